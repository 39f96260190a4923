#pragma once
// The folder of a model as an argument.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attune::cli {

/// Adds a positional argument for the folder of a model. The folder of a run stands for the model in it. Parsing throws
/// ConfigError for the folder of a run that has no model yet, naming the best one so far where there is one.
CLI::Option* add_model(CLI::App& command, std::string& folder, const std::string& description = "Folder of the model");

/// Adds an option for the folder of a model, which may be given several times, likewise.
CLI::Option* add_models(CLI::App& command, const std::string& name, std::vector<std::string>& folders,
                        const std::string& description);

/// Throws ConfigError when there is no such folder; `usage` ends the message: "attune translate MODEL TEXT".
void check_model(const std::string& folder, const std::string& usage);

/// Where `folder` does not exist but one of `texts` is the folder of a model, swaps the two and prints a note. Throws
/// ConfigError as check_model() does when none of them is one.
void find_model(std::string& folder, std::vector<std::string>& texts, const std::string& usage);

/// The same for a tokenizer, which is a file or a folder.
void find_tokenizer_argument(std::string& tokenizer, std::vector<std::string>& texts, const std::string& usage);

}  // namespace attune::cli

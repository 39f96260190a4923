#pragma once
// Sentences on the command line.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attune::cli {

/// Adds positional arguments that are taken as they are. CLI11's own vectors would take "[a, b]" for two values and
/// "{}" for none.
void add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
               const std::string& description);

/// "text 2 of the command line", for messages; `index` counts from 0. Throws DataError when the text is not UTF-8.
std::string place_of_text(const std::vector<std::string>& texts, size_t index);

}  // namespace attune::cli

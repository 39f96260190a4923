#pragma once
// The text that `attune train` takes in place of a configuration.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "attune/train/config/automatic_config.h"

namespace attune::cli {

/// Names of files.
struct TrainingText {
  std::vector<std::string> source, target, valid_source, valid_target;  // of pairs
  std::vector<std::string> labelled, text, valid;
};

void add_training_text(CLI::App& command, TrainingText& text);

/// The first of its options that was used; "": none.
std::string used_option(const TrainingText& text);

/// The sections of a configuration that name the text, and model.architecture. Throws ConfigError, naming the options,
/// where they contradict each other or one is missing.
Json sections_of(const TrainingText& text);

/// What was chosen, for people: "key = value  why", a line each.
std::string choice_table(const std::vector<Choice>& choices);

}  // namespace attune::cli

#pragma once
// --precision of a subcommand.

#include <CLI/CLI.hpp>
#include <string>

#include "attune/base/execution.h"

namespace attune::cli {

/// Adds the option: the type of activations in matrix products, "float32" unless it is given.
void add_precision(CLI::App& command, std::string& precision);

/// Writes a note where this processor is slower with it.
void note_precision(ProductPrecision precision);

/// What was given, after note_precision(). Throws ConfigError for another name.
ProductPrecision precision_of(const std::string& given);

}  // namespace attune::cli

#pragma once
// --precision of a subcommand.

#include <CLI/CLI.hpp>
#include <string>

#include "attune/base/execution.h"
#include "attune/tensor/device.h"

namespace attune::cli {

/// Adds the option: the type of activations in matrix products, "float32" unless it is given.
void add_precision(CLI::App& command, std::string& precision);

/// Writes a note where the device is slower with it.
void note_precision(ProductPrecision precision, const Device& device);

/// Returns the precision that the option's value means on this device, after note_precision(). Throws ConfigError for
/// an unknown name.
ProductPrecision precision_of(const std::string& given, const Device& device);

}  // namespace attune::cli

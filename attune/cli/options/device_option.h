#pragma once
// --device of a subcommand.

#include <CLI/CLI.hpp>
#include <string>

#include "attune/tensor/device.h"

namespace attune::cli {

/// Adds the option: where the model computes, on the CPU unless it is given.
void add_device(CLI::App& command, std::string& device);

/// The device that was given. Throws ConfigError for an unknown name, and DeviceError if it cannot be used.
Device device_of(const std::string& given);

}  // namespace attune::cli

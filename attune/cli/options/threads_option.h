#pragma once
// --threads of a subcommand.

#include <CLI/CLI.hpp>
#include <cstdint>

#include "attune/base/parallel.h"

namespace attune::cli {

/// Adds the option; 0: default_thread_count().
void add_threads(CLI::App& command, int64_t& threads);

/// Sets the number of threads until the result is destroyed. Throws ConfigError.
[[nodiscard]] ThreadScope use_threads(int64_t threads);

}  // namespace attune::cli

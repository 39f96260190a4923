#pragma once

#include <CLI/CLI.hpp>

namespace attune::cli {

void add_bench_serve(CLI::App& bench);

}  // namespace attune::cli

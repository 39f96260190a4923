#pragma once

#include "attune/base/json.h"

namespace attune::cli {

/// Writes what was measured, a JSON object, to standard output: for programs on one line, else a line for each value.
void print_result(const Json& result, bool as_json);

}  // namespace attune::cli

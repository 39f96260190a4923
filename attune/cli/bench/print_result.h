#pragma once

#include "attune/base/json.h"

namespace attune::cli {

/// Writes the measured values, a JSON object, to standard output. `as_json`: true writes them as JSON on one line,
/// false writes a line for each value.
void print_result(const Json& result, bool as_json);

}  // namespace attune::cli

#pragma once

#include <string>

#include "attune/base/execution.h"
#include "attune/base/fail.h"

namespace attune::python {

/// Throws ConfigError unless it is the name of a precision.
inline ProductPrecision precision_of(const std::string& name) {
  if (name == "float32") return ProductPrecision::float32;
  if (name == "bfloat16") return ProductPrecision::bfloat16;
  fail<ConfigError>("precision: is \"{}\", needs one of float32, bfloat16", name);
}

}  // namespace attune::python

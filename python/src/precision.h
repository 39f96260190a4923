#pragma once

#include <string>

#include "attune/base/fail.h"
#include "attune/ops/precision_choice.h"

namespace attune::python {

/// Throws ConfigError unless it is the name of a precision or "auto".
inline ProductPrecision precision_of(const std::string& name) {
  for (const auto& [choice, known] : EnumNames<PrecisionChoice>::values)
    if (name == known) return resolved(choice);
  fail<ConfigError>("precision: is \"{}\", needs one of float32, bfloat16, auto", name);
}

}  // namespace attune::python

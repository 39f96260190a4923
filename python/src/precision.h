#pragma once

#include <string>

#include "attune/base/fail.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/tensor/device.h"

namespace attune::python {

/// The precision of this name on the device. Throws ConfigError unless the name is "float32", "bfloat16" or "auto".
inline ProductPrecision precision_of(const std::string& name, const Device& device = {}) {
  for (const auto& [choice, known] : EnumNames<PrecisionChoice>::values)
    if (name == known) return resolved(choice, device);
  fail<ConfigError>("precision: is \"{}\", needs one of float32, bfloat16, auto", name);
}

}  // namespace attune::python

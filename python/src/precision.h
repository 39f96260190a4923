#pragma once

#include <optional>
#include <string>

#include "attune/base/fail.h"
#include "attune/ops/precision_choice.h"
#include "attune/tensor/device.h"

namespace attune::python {

/// Throws ConfigError unless it is the name of a precision or "auto".
inline ProductPrecision precision_of(const std::string& name) {
  for (const auto& [choice, known] : EnumNames<PrecisionChoice>::values)
    if (name == known) return resolved(choice);
  fail<ConfigError>("precision: is \"{}\", needs one of float32, bfloat16, auto", name);
}

/// The device with this name. Throws ConfigError, and DeviceError if it cannot be used.
inline std::optional<Device> device_of(const std::optional<std::string>& name) {
  if (!name) return {};
  return Device::named(*name);
}

}  // namespace attune::python

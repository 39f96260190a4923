#pragma once

#include <optional>
#include <span>
#include <string>

#include "attune/base/execution.h"
#include "attune/nn/module.h"

namespace attune {

/// Moves a model that is to be used to `device` (none: it stays where it is), and makes it ready for products of this
/// precision: with panels on the CPU; with tensors elsewhere, see round_matrices() for products in bfloat16. Returns
/// the device that it is on. Throws DeviceError if that cannot be used; ConfigError if the model has int8 or int4
/// panels alone and products are to be in bfloat16, or if it would have to move and has `adapters` to choose from:
/// these stay on the device where they were read.
Device place_model(Module& model, const std::optional<Device>& device, ProductPrecision precision,
                   std::span<const std::string> adapters = {});

}  // namespace attune

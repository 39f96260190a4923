#pragma once

#include <cstddef>
#include <span>

#include "attune/io/safetensors_header.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Fills `target` with values as a file stores them: one after the other, little-endian, at any address. `target` is on
/// the CPU, has loaded_type(type) and one element for each value. float16 and bfloat16 are widened, which is exact.
void load_stored(StoredType type, std::span<const std::byte> from, const Tensor& target);

}  // namespace attune

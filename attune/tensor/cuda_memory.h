#pragma once
// How much memory a GPU has left, and how much was used. kernels/cuda implements it; cuda_missing.cpp does in a build
// without CUDA.

#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

/// The bytes that can still be allocated. Throws DeviceError as check_usable() does.
int64_t free_bytes_of(Cuda device);

/// The bytes that tensors of this process had there at most. Throws DeviceError as check_usable() does.
int64_t peak_bytes_of(Cuda device);

}  // namespace attune

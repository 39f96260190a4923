#pragma once
// What the sources that call CUDA's runtime library share.

#include <cuda_runtime.h>

#include <string_view>

#include "attune/tensor/device.h"

namespace attune::cuda {

/// Throws DeviceError, which names `what` and the last kernel that was started, unless the call succeeded.
void check(Cuda device, std::string_view what, cudaError_t error);

}  // namespace attune::cuda

#pragma once
// Copies from the host that go on beside the work of a device.

#include <cstddef>
#include <span>

#include "attune/tensor/device.h"

namespace attune::cuda {

/// Copies `values` into pinned memory, and starts the copy from there to `to`, which is memory of
/// allocate_for_sending(). `values` may change after the call; what is started on the device later finds them at `to`.
/// Pinned memory is used again once its copy is done. Thread-safe. Throws DeviceError.
void send(Cuda device, std::span<const std::byte> values, void* to);

/// Pinned blocks of the device, in use or not.
size_t pinned_blocks(Cuda device);

}  // namespace attune::cuda

#pragma once
// What tensors ask of GPUs. kernels/cuda implements it; cuda_missing.cpp does in a build without CUDA.

#include <cstddef>
#include <memory>
#include <span>

#include "attune/tensor/buffer.h"
#include "attune/tensor/device.h"

namespace attune {

/// Throws DeviceError, which says what is missing, unless this GPU can be used: no CUDA in this build, no driver, no
/// such GPU, or one of another architecture.
void check_usable(Cuda device);

/// The number of GPUs that this process sees, at least 1. Takes no memory of any of them. Throws DeviceError, which
/// says what is missing: no CUDA in this build, no driver, no GPU.
int count_cuda_devices();

/// Uninitialised memory of a GPU, aligned to 256 bytes. Thread-safe. Throws DeviceError as check_usable() does, and
/// DeviceOutOfMemory.
std::shared_ptr<Buffer> allocate_cuda_buffer(Cuda device, size_t bytes);

/// Allocates memory of a GPU and copies `values` there while the GPU goes on with its work. Work that is started there
/// later waits for the copy; `values` may change after the call. Throws as allocate_cuda_buffer().
std::shared_ptr<Buffer> send_to_cuda(Cuda device, std::span<const std::byte> values);

/// While this object lives, the calls that this thread makes go to the given GPU.
class CudaScope {
 public:
  explicit CudaScope(Cuda device);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  int before_;
};

}  // namespace attune

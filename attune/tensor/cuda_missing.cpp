// The GPUs of a build without CUDA: none.

#include "attune/tensor/cuda_device.h"
#include "attune/tensor/cuda_group.h"
#include "attune/tensor/cuda_memory.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/staging.h"

namespace attune {

void check_usable(Cuda device) {
  throw DeviceError("device " + Device(device).text() + ": Attune was built without CUDA (docs/cuda.md)");
}

int count_cuda_devices() {
  check_usable(Cuda{});
  return 0;
}

std::shared_ptr<Buffer> allocate_cuda_buffer(Cuda device, size_t /*bytes*/) {
  check_usable(device);
  return nullptr;
}

std::shared_ptr<Buffer> send_to_cuda(Cuda device, std::span<const std::byte> /*values*/) {
  check_usable(device);
  return nullptr;
}

std::shared_ptr<Staging> make_cuda_staging(const Tensor& x) {
  check_usable({x.device().index()});
  return nullptr;
}

int64_t free_bytes_of(Cuda device) {
  check_usable(device);
  return 0;
}

int64_t peak_bytes_of(Cuda device) {
  check_usable(device);
  return 0;
}

CudaIdentity identity_of(Cuda device) {
  check_usable(device);
  return {};
}

CudaLibrary cuda_group_library() {
  return {.missing = "Attune was built without CUDA"};
}

CudaGroupId make_cuda_group_id() {
  check_usable(Cuda{});
  return {};
}

std::unique_ptr<CudaGroup> join_cuda_group(Cuda device, const CudaGroupId& /*id*/, int /*rank*/, int /*size*/,
                                           const std::function<void()>& /*meet*/) {
  check_usable(device);
  return nullptr;
}

}  // namespace attune

// The GPUs of a build without CUDA: none.

#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune {

void check_usable(Cuda device) {
  throw DeviceError("device " + Device(device).text() + ": Attune was built without CUDA (docs/cuda.md)");
}

std::shared_ptr<Buffer> allocate_cuda_buffer(Cuda device, size_t /*bytes*/) {
  check_usable(device);
  return nullptr;
}

}  // namespace attune

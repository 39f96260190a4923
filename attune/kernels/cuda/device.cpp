// GPUs as tensors see them.

#include "attune/kernels/cuda/runtime.h"
#include "attune/tensor/cuda_device.h"

namespace attune {
namespace {

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(Cuda device, size_t bytes) : Buffer(cuda::allocate(device, bytes), bytes, nullptr), device_(device) {}
  ~CudaBuffer() { cuda::release(device_, data()); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

 private:
  Cuda device_;
};

}  // namespace

void check_usable(Cuda device) {
  cuda::check_device(device);
}

std::shared_ptr<Buffer> allocate_cuda_buffer(Cuda device, size_t bytes) {
  cuda::check_device(device);
  return std::make_shared<CudaBuffer>(device, bytes);
}

CudaScope::CudaScope(Cuda device) : before_(cuda::use(device)) {}
CudaScope::~CudaScope() {
  cuda::use_again(before_);
}

}  // namespace attune

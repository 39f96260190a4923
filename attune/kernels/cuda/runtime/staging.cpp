// Tensors of a GPU that pass through the memory of the host, by copies beside the work of the GPU.

#include "attune/tensor/staging.h"

#include <algorithm>

#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune {
namespace {

// Pinned memory, or other memory of the host if there is none: the same calls copy from and to it, but may then wait
// for the copy.
std::shared_ptr<Buffer> memory_for_copies(Cuda device, size_t bytes) {
  try {
    const std::shared_ptr<void> pinned(cuda::allocate_pinned(device, std::max<size_t>(bytes, 1)), cuda::release_pinned);
    return std::make_shared<Buffer>(pinned.get(), bytes, pinned);
  } catch (const DeviceError&) {
    return allocate_buffer(bytes);
  }
}

// One event serves both directions. fetch() needs none of the send() before it: it waits for the device's work, which
// waits for that send().
class CudaStaging final : public Staging {
 public:
  explicit CudaStaging(const Tensor& x)
      : Staging(Tensor::in_buffer(x.shape(), x.dtype(), memory_for_copies({x.device().index()}, x.bytes()), 0)),
        device_{x.device().index()},
        event_(cuda::make_event(device_), cuda::release_event) {}
  // The memory must stay while a copy uses it.
  ~CudaStaging() override {
    try {
      wait();
    } catch (const DeviceError&) {
      return;  // the device has failed and copies nothing more
    }
  }
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  void fetch(const Tensor& from, const Tensor& to) override {
    const CudaScope scope(device_);
    cuda::fetch(device_, from.raw(), to.raw(), to.bytes(), event_.get());
  }
  void wait() override {
    const CudaScope scope(device_);
    cuda::wait(device_, event_.get());
  }
  void send(const Tensor& from, const Tensor& to) override {
    const CudaScope scope(device_);
    if (to.bytes() > 0) cuda::send(device_, from.raw(), to.raw(), to.bytes(), event_.get());
  }

 private:
  Cuda device_;
  std::shared_ptr<void> event_;  // of the copy that was started last
};

}  // namespace

std::shared_ptr<Staging> make_cuda_staging(const Tensor& x) {
  return std::make_shared<CudaStaging>(x);
}

}  // namespace attune

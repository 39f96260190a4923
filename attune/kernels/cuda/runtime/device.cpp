// GPUs as tensors see them.

#include <limits>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/kernels/cuda/runtime/sending.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/cuda_memory.h"
#include "attune/tensor/device_error.h"

namespace attune {
namespace {

class CudaBuffer final : public Buffer {
 public:
  using Allocate = void* (*)(Cuda device, size_t bytes);
  CudaBuffer(Cuda device, size_t bytes, Allocate allocate = cuda::allocate)
      : Buffer(allocate(device, bytes), bytes, nullptr), device_(device) {}
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

int count_cuda_devices() {
  const int count = cuda::device_count();
  if (count == 0) cuda::refuse_missing(Cuda{}, count);
  return count;
}

std::shared_ptr<Buffer> allocate_cuda_buffer(Cuda device, size_t bytes) {
  cuda::check_device(device);
  return std::make_shared<CudaBuffer>(device, bytes);
}

std::shared_ptr<Buffer> send_to_cuda(Cuda device, std::span<const std::byte> values) {
  cuda::check_device(device);
  const CudaScope scope(device);
  auto buffer = std::make_shared<CudaBuffer>(device, values.size(), cuda::allocate_for_sending);
  cuda::send(device, values, buffer->data());
  return buffer;
}

void cuda::check_shape(Cuda device, const char* kernel, int64_t blocks, int threads, int most_threads) {
  if (threads > most_threads)
    fail<DeviceError>("device {}: kernel {} was launched with {} threads in a block, it is compiled for at most {}",
                      Device(device).text(), kernel, threads, most_threads);
  if (blocks > std::numeric_limits<int32_t>::max())
    fail<DeviceError>("device {}: kernel {} was launched with {} blocks, a GPU takes at most {}", Device(device).text(),
                      kernel, blocks, std::numeric_limits<int32_t>::max());
}

void cuda::refuse_missing(Cuda device, int count) {
  fail<DeviceError>("device {}: this process sees {} GPUs (CUDA_VISIBLE_DEVICES may hide others)",
                    Device(device).text(), count);
}

void cuda::refuse_shared(Cuda device, const char* kernel, size_t bytes, size_t most) {
  fail<DeviceError>("device {}: a block of kernel {} needs {} bytes of shared memory, the device has {}",
                    Device(device).text(), kernel, bytes, most);
}

int64_t free_bytes_of(Cuda device) {
  cuda::check_device(device);
  return static_cast<int64_t>(cuda::memory_of(device).free);
}

int64_t peak_bytes_of(Cuda device) {
  cuda::check_device(device);
  return static_cast<int64_t>(cuda::memory_of(device).peak);
}

CudaScope::CudaScope(Cuda device) : before_(cuda::use(device)) {}
CudaScope::~CudaScope() {
  cuda::use_again(before_);
}

}  // namespace attune

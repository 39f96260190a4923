#include <cuda_runtime.h>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime.h"
#include "attune/kernels/cuda/streams.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune::cuda {
namespace {

void check(Cuda device, const char* what, cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // it is told here: check_launch() would tell it of the next kernel too
  fail<DeviceError>("device {}: {} failed: {}", Device(device).text(), what, cudaGetErrorString(error));
}

cudaEvent_t event_in(const std::shared_ptr<void>& handle) {
  return static_cast<cudaEvent_t>(handle.get());
}

std::shared_ptr<void> make_event(Cuda device, unsigned flags) {
  const CudaScope scope(device);
  cudaEvent_t event = nullptr;
  check(device, "making an event", cudaEventCreateWithFlags(&event, flags));
  return {event, [](void* made) { cudaEventDestroy(static_cast<cudaEvent_t>(made)); }};
}

}  // namespace

SideStream::SideStream(Cuda device) : device_(device) {
  const CudaScope scope(device);
  cudaStream_t stream = nullptr;
  check(device, "making a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  handle_ = {stream, [](void* made) { cudaStreamDestroy(static_cast<cudaStream_t>(made)); }};
}

void SideStream::follow_device() const {
  const CudaScope scope(device_);
  const std::shared_ptr<void> so_far = make_event(device_, cudaEventDisableTiming);
  check(device_, "recording an event",
        cudaEventRecord(event_in(so_far), static_cast<cudaStream_t>(stream_of(device_))));
  check(device_, "waiting for an event", cudaStreamWaitEvent(static_cast<cudaStream_t>(handle()), event_in(so_far), 0));
}

Event::Event(Cuda device) : device_(device), handle_(make_event(device, cudaEventDefault)) {}

void Event::record(const SideStream& stream) const {
  const CudaScope scope(device_);
  check(device_, "recording an event", cudaEventRecord(event_in(handle_), static_cast<cudaStream_t>(stream.handle())));
}

bool Event::happened() const {
  const CudaScope scope(device_);
  const cudaError_t state = cudaEventQuery(event_in(handle_));
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // no failure
    return false;
  }
  check(device_, "waiting for an event", state);
  return true;
}

double Event::seconds_since(const Event& first) const {
  const CudaScope scope(device_);
  float milliseconds = 0;
  check(device_, "measuring time", cudaEventElapsedTime(&milliseconds, event_in(first.handle_), event_in(handle_)));
  return static_cast<double>(milliseconds) / 1e3;
}

}  // namespace attune::cuda

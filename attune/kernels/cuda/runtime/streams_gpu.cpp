#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/kernels/cuda/runtime/runtime_gpu.h"
#include "attune/kernels/cuda/runtime/streams.h"
#include "attune/tensor/cuda_device.h"

namespace attune::cuda {
namespace {

cudaEvent_t event_in(const std::shared_ptr<void>& handle) {
  return static_cast<cudaEvent_t>(handle.get());
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
  const std::shared_ptr<void> so_far(make_event(device_), release_event);
  check(device_, "recording an event",
        cudaEventRecord(event_in(so_far), static_cast<cudaStream_t>(stream_of(device_))));
  check(device_, "waiting for an event", cudaStreamWaitEvent(static_cast<cudaStream_t>(handle()), event_in(so_far), 0));
}

// With timing, which events of make_event() leave out.
Event::Event(Cuda device) : device_(device) {
  const CudaScope scope(device);
  cudaEvent_t event = nullptr;
  check(device, "making an event", cudaEventCreateWithFlags(&event, cudaEventDefault));
  handle_ = {event, release_event};
}

void Event::record(const SideStream& stream) const {
  const CudaScope scope(device_);
  check(device_, "recording an event", cudaEventRecord(event_in(handle_), static_cast<cudaStream_t>(stream.handle())));
}

bool Event::happened() const {
  return is_done(device_, handle_.get());
}

double Event::seconds_since(const Event& first) const {
  const CudaScope scope(device_);
  float milliseconds = 0;
  check(device_, "measuring time", cudaEventElapsedTime(&milliseconds, event_in(first.handle_), event_in(handle_)));
  return static_cast<double>(milliseconds) / 1e3;
}

}  // namespace attune::cuda

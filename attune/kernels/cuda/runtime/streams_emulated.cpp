#include <chrono>

#include "attune/kernels/cuda/runtime/streams.h"
#include "attune/kernels/cuda/runtime/streams_emulated.h"

namespace attune::cuda {
namespace {

struct EmulatedEvent {
  std::weak_ptr<void> stream;  // an EmulatedStream, whose work holds this event
  bool happened = false;
  std::chrono::steady_clock::time_point at;
};

EmulatedEvent& event_in(const std::shared_ptr<void>& handle) {
  return *static_cast<EmulatedEvent*>(handle.get());
}

}  // namespace

SideStream::SideStream(Cuda device) : device_(device), handle_(std::make_shared<EmulatedStream>()) {}

void SideStream::follow_device() const {
  emulated(*this).followed = work_of(device_);
}

Event::Event(Cuda device) : device_(device), handle_(std::make_shared<EmulatedEvent>()) {}

void Event::record(const SideStream& stream) const {
  event_in(handle_).stream = stream.shared_handle();
  event_in(handle_).happened = false;
  emulated(stream).work.emplace_back([event = handle_] {
    event_in(event).happened = true;
    event_in(event).at = std::chrono::steady_clock::now();
    return true;
  });
}

bool Event::happened() const {
  const std::shared_ptr<void> stream = event_in(handle_).stream.lock();
  if (!stream) return event_in(handle_).happened;
  auto& work = static_cast<EmulatedStream*>(stream.get())->work;
  while (!event_in(handle_).happened && !work.empty() && work.front()()) work.pop_front();
  return event_in(handle_).happened;
}

double Event::seconds_since(const Event& first) const {
  return std::chrono::duration<double>(event_in(handle_).at - event_in(first.handle_).at).count();
}

}  // namespace attune::cuda

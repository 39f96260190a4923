#pragma once
// Streams beside the one that every device has, and events, which say how far a stream has come. streams_gpu.cpp is for
// GPUs. In the emulation, what is started on such a stream runs as late as possible: when the host asks for an event
// that was recorded after it.

#include <memory>

#include "attune/tensor/device.h"

namespace attune::cuda {

class SideStream {
 public:
  /// Throws DeviceError.
  explicit SideStream(Cuda device);

  Cuda device() const { return device_; }
  /// cudaStream_t; in the emulation an EmulatedStream.
  void* handle() const { return handle_.get(); }
  const std::shared_ptr<void>& shared_handle() const { return handle_; }

  /// What is started here from now on waits for everything that the device's own stream was given so far. Throws
  /// DeviceError.
  void follow_device() const;

 private:
  Cuda device_;
  std::shared_ptr<void> handle_;
};

class Event {
 public:
  /// Throws DeviceError.
  explicit Event(Cuda device);

  /// The event happens when everything is done that the stream was given so far. Throws DeviceError.
  void record(const SideStream& stream) const;
  /// Whether it has happened since it was recorded. Throws DeviceError; in the emulation also what the stream's work
  /// throws.
  bool happened() const;
  /// The seconds from `first` to this event; both must have happened. Throws DeviceError.
  double seconds_since(const Event& first) const;

 private:
  Cuda device_;
  std::shared_ptr<void> handle_;
};

}  // namespace attune::cuda

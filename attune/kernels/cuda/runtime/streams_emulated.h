#pragma once
// What stands behind SideStream in the emulation.

#include <cstdint>
#include <deque>
#include <functional>

#include "attune/kernels/cuda/runtime/streams.h"

namespace attune::cuda {

/// How often something was started on the device's own stream so far: kernels, copies, clearing.
uint64_t work_of(Cuda device);

struct EmulatedStream {
  uint64_t followed = 0;                   // the device's work that comes before what is started here
  std::deque<std::function<bool()>> work;  // returns false if it cannot run yet
};

inline EmulatedStream& emulated(const SideStream& stream) {
  return *static_cast<EmulatedStream*>(stream.handle());
}

}  // namespace attune::cuda

#pragma once
// Runs the threads of a kernel on the host, for tests: one after the other, each until it waits for the others. A
// kernel without a race gives the same results whatever the order of threads and blocks is.
//
// The environment variable ATTUNE_CUDA_ORDER is `forward` (default), `backward`, or a number from 1, which shuffles
// threads and blocks. ATTUNE_CUDA_RACES=1 runs each kernel three times, forward, backward and shuffled, from the same
// memory, and fails where the memory after them differs. ATTUNE_CUDA_COPIES=late is LateCopies for the whole program.
// All are read once. Looking for races needs a program with one thread.

#include <cstdint>
#include <functional>

#include "attune/tensor/device.h"

namespace attune::cuda {

class Thread;

struct EmulatedShape {
  const char* kernel;
  int64_t blocks;
  int threads;
  size_t shared_bytes;
};

/// While this object lives, kernels are checked for races as with ATTUNE_CUDA_RACES=1.
class RaceCheck {
 public:
  RaceCheck();
  ~RaceCheck();
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;
};

/// While this object lives, copies beside the work of a device are done as late as possible. A copy to the device is
/// done before the next work of any device. A copy from the device is done when the host waits for it, and there is NaN
/// in its place until then. Each copies what its source holds at that time. As with ATTUNE_CUDA_COPIES=late.
class LateCopies {
 public:
  LateCopies();
  ~LateCopies();
  LateCopies(const LateCopies&) = delete;
  LateCopies& operator=(const LateCopies&) = delete;
};

/// While this object lives, there is no pinned memory.
class NoPinnedMemory {
 public:
  NoPinnedMemory();
  ~NoPinnedMemory();
  NoPinnedMemory(const NoPinnedMemory&) = delete;
  NoPinnedMemory& operator=(const NoPinnedMemory&) = delete;
};

/// Does the copies to devices that are still to be done. All work of a device calls this first.
void finish_copies();

/// How often the host has waited for a device so far: for a copy to the host, for an event, or for all work.
uint64_t waits_of(Cuda device);

/// Runs `body` once for each thread of each block. Throws DeviceError, which names the kernel, if threads of a block
/// wait at different barriers or at one that others never reach, or use more shared memory than there is, or if the
/// results depend on the order of the threads (ATTUNE_CUDA_RACES).
void emulate(const EmulatedShape& shape, const std::function<void(Thread&)>& body);

/// Calls `body` for 0 ... count - 1, in the order of ATTUNE_CUDA_ORDER: threads that do not see each other.
void emulate_elements(const char* kernel, int64_t count, const std::function<void(int64_t)>& body);

}  // namespace attune::cuda

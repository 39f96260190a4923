#pragma once
// Threads that stand in for the processes of a run.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "attune/dist/communicator.h"

namespace attune {

/// Calls body(communicator) for each of `ranks` ranks on a thread of its own. When one throws, the others' operations
/// fail; throws what the first of them threw. OpenMP's number of threads is 1 on each. With `library_calls` their
/// network has collective operations of its own, as MPI has, and counts the calls there.
void run_in_process(int ranks, const std::function<void(Communicator&)>& body,
                    std::atomic<int64_t>* library_calls = nullptr);

}  // namespace attune

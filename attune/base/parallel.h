#pragma once
// Threads: how many, and loops over pieces that several of them work on.

#include <cstdint>
#include <functional>

#include "attune/base/execution.h"

namespace [[gnu::visibility("default")]] attune {

/// The number of threads in a parallel region of the calling thread: execution().threads, or the process's own number
/// (docs/threads.md) if that is 0. Throws ConfigError if ATTUNE_THREADS is set, but not to a number from 1 to 1024.
int thread_count();

/// While this object lives, parallel regions of the calling thread have `threads` threads; 0: as many as before.
/// Throws ConfigError unless 0 <= threads <= 1024.
class ThreadScope {
 public:
  explicit ThreadScope(int64_t threads);

 private:
  ExecutionScope scope_;
};

namespace detail {
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body);
}

/// Calls body(begin, end) in parallel for pieces of [0, size) of at most `grain` elements. The pieces do not depend
/// on the number of threads, so a sum formed piece by piece is the same on every machine. `body` itself runs on one
/// thread.
template <class Body>
void parallel_for(int64_t size, int64_t grain, Body&& body) {
  if (size <= 0) return;
  const int64_t chunks = size <= grain ? 1 : (size + grain - 1) / grain;
  if (chunks == 1) {
    body(int64_t{0}, size);
    return;
  }
  detail::parallel_run(chunks, [&](int64_t chunk) {
    const int64_t begin = chunk * grain;
    const int64_t end = begin + grain < size ? begin + grain : size;
    body(begin, end);
  });
}

}  // namespace attune

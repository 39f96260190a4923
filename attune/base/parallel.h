#pragma once
// Threads: one OpenMP pool, shared with oneDNN.

#include <cstdint>
#include <functional>

namespace [[gnu::visibility("default")]] attune {

/// Threads that a parallel region of the calling thread will use; setting it is for the calling thread too.
int thread_count();
void set_thread_count(int threads);

namespace detail {
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body);
}

/// Calls body(begin, end) over [0, size) in pieces of at most `grain` elements, in parallel. The pieces do not depend
/// on the number of threads, so that a sum formed piece by piece is the same on every machine.
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

#include "attune/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace attune {

int thread_count() {
  return omp_get_max_threads();
}
void set_thread_count(int threads) {
  omp_set_num_threads(threads < 1 ? 1 : threads);
}

namespace detail {

namespace {

// Runs work() on every thread. The thread sanitizer does not see how libgomp's threads wait for each other and would
// call each region a race; under it, threads of the standard library do the same work.
template <class Work>
void on_every_thread(Work&& work) {
#if defined(__SANITIZE_THREAD__)
  std::vector<std::jthread> threads;
  for (int i = 1; i < omp_get_max_threads(); ++i) threads.emplace_back(work);
  work();
#else
#pragma omp parallel
  work();
#endif
}

}  // namespace

// An exception may not leave a parallel region: the first one is kept and thrown afterwards.
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body) {
  if (omp_in_parallel() || omp_get_max_threads() == 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
  std::atomic<int64_t> next{0};
  on_every_thread([&] {
    for (int64_t chunk = next++; chunk < chunks; chunk = next++) {
      if (failed.load(std::memory_order_relaxed)) return;
      try {
        body(chunk);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace attune

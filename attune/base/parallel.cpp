#include "attune/base/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>

namespace attune {

int thread_count() { return omp_get_max_threads(); }
void set_thread_count(int threads) { omp_set_num_threads(threads < 1 ? 1 : threads); }

namespace detail {

// An exception may not leave a parallel region: the first one is kept and thrown afterwards.
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body) {
  if (omp_in_parallel() || omp_get_max_threads() == 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      body(chunk);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace attune

#include "attune/base/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "attune/base/check.h"
#include "attune/base/processors.h"

namespace attune {

int thread_count() {
  const int threads = execution().threads;
  return threads > 0 ? threads : default_thread_count();
}

ThreadScope::ThreadScope(int64_t threads)
    : scope_([&](Execution& e) {
        check_range<int64_t>("threads", threads, 0, kMostThreads);
        if (threads > 0) e.threads = static_cast<int>(threads);
      }) {}

OpenMpThreads::OpenMpThreads() : before_(omp_get_max_threads()) {
  if (const int threads = thread_count(); threads != before_) omp_set_num_threads(threads);
}

OpenMpThreads::~OpenMpThreads() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

namespace detail {

namespace {

// Runs work(is_caller) on `count` threads, of which the caller's is one. The thread sanitizer does not see how
// libgomp's threads wait for each other and would call each region a race; under it, threads of the standard library do
// the same work.
template <class Work>
void on_threads(int count, Work&& work) {
#if defined(__SANITIZE_THREAD__)
  std::vector<std::jthread> threads;
  for (int i = 1; i < count; ++i) threads.emplace_back(work, false);
  work(true);
#else
#pragma omp parallel num_threads(count)
  work(omp_get_thread_num() == 0);
#endif
}

}  // namespace

// An exception may not leave a parallel region: the first one is kept and thrown afterwards.
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body) {
  const int threads = thread_count();
  if (threads == 1 || omp_in_parallel()) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
  std::atomic<int64_t> next{0};
  const Execution& outer = execution();
  on_threads(threads, [&](bool is_caller) {
    const ExecutionScope scope([&](Execution& e) {
      e = outer;
      e.threads = 1;
      if (!is_caller) e.profile = nullptr;  // which is one thread's
    });
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

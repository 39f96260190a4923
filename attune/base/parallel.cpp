#include "attune/base/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>
#include <thread>

#include "attune/base/check.h"
#include "attune/base/processors.h"
#include "attune/base/thread_team.h"

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

namespace detail {

// Workers must not throw: the first exception is kept and thrown afterwards.
void parallel_run(int64_t chunks, const std::function<void(int64_t)>& body) {
  const int threads = thread_count();
  if (threads == 1 || omp_in_parallel()) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
  const Execution& outer = execution();
  const std::thread::id caller = std::this_thread::get_id();
  ThreadTeam::of_process().run(threads, chunks, [&](ThreadTeam::Pieces& pieces) {
    const ExecutionScope scope([&](Execution& e) {
      e = outer;
      e.threads = 1;
      if (std::this_thread::get_id() != caller) {  // these are one thread's
        e.profile = nullptr;
        e.unwanted = nullptr;
      }
    });
    for (int64_t chunk = pieces.next(); chunk < chunks; chunk = pieces.next()) {
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

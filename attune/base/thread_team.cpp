#include "attune/base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <system_error>

#include "attune/base/block_signals.h"

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread looks for work, or waits for other threads, before it sleeps. Operations follow each other within
// microseconds; to wake a thread costs about ten.
constexpr auto kSpin = std::chrono::microseconds(200);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until done() is true, without sleeping. False if that takes longer than kSpin.
template <class Done>
bool spin_until(Done&& done) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return done();
}

// The system often puts a thread that it wakes on the processor of the thread that woke it, and leaves it there for
// long although another processor is idle. Moves the calling thread to another one; it may run anywhere afterwards.
void leave_processor(int processor) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<size_t>(processor), &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace

int64_t ThreadTeam::Pieces::next() {
  return std::min(pieces_, next_.fetch_add(1, std::memory_order_relaxed));
}

ThreadTeam& ThreadTeam::of_process() {
  static std::unique_ptr<ThreadTeam> team = [] {
    // The threads of a process do not exist in its forked copy, and the old team's state is of no use there.
    pthread_atfork(nullptr, nullptr, [] {
      static_cast<void>(team.release());
      team = std::make_unique<ThreadTeam>();
    });
    return std::make_unique<ThreadTeam>();
  }();
  return *team;
}

ThreadTeam::~ThreadTeam() {
  ending_ = true;
  ++posted_;
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(int threads, int64_t pieces, const std::function<void(Pieces&)>& work) {
  const auto helpers = static_cast<int>(std::min<int64_t>(threads, pieces)) - 1;
  Job job{.pieces = Pieces(pieces), .work = work, .places = helpers, .processor = sched_getcpu()};
  if (helpers > 0) {
    const std::lock_guard lock(mutex_);
    grow(static_cast<size_t>(helpers));
    jobs_.push_back(&job);
    ++posted_;
  }
  for (int i = 0; i < helpers; ++i) posted_.notify_one();
  work(job.pieces);
  if (helpers <= 0) return;
  {
    const std::lock_guard lock(mutex_);
    jobs_.remove(&job);
  }
  wait_for_workers(job);
}

// Where the system gives no more threads, those that are there do the work.
void ThreadTeam::grow(size_t workers) try {
  while (threads_.size() < workers) threads_.emplace_back([this] { worker(); });
} catch (const std::system_error&) {
}

void ThreadTeam::worker() {
  block_signals();
  while (!ending_) {
    const uint32_t posted = posted_.load();
    if (Job* job = join_job()) {
      if (sched_getcpu() == job->processor) leave_processor(job->processor);
      job->work(job->pieces);
      leave(*job);
    } else {
      wait_for_job(posted);
    }
  }
}

ThreadTeam::Job* ThreadTeam::join_job() {
  const std::lock_guard lock(mutex_);
  for (Job* job : jobs_) {
    if (job->places == 0 || !job->pieces.left()) continue;
    --job->places;
    ++job->working;
    return job;
  }
  return nullptr;
}

void ThreadTeam::wait_for_job(uint32_t posted) {
  if (!spin_until([&] { return posted_.load() != posted; })) posted_.wait(posted);
}

// After the last worker of a job has left, the job may be gone.
void ThreadTeam::leave(Job& job) {
  if (--job.working > 0) return;
  ++returned_;
  returned_.notify_all();
}

void ThreadTeam::wait_for_workers(const Job& job) {
  if (spin_until([&] { return job.working == 0; })) return;
  for (uint32_t returned = returned_; job.working > 0; returned = returned_) returned_.wait(returned);
}

}  // namespace attune

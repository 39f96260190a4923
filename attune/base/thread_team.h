#pragma once
// The worker threads of the process, which work on the pieces of parallel loops.

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace attune {

/// Worker threads that several callers share. Each thread takes the next piece when it is done with one, so that a
/// thread which another program holds up leaves its share to the others, and nobody waits for a thread that has not
/// begun. A thread without work looks for some during a short time and then sleeps.
class ThreadTeam {
 public:
  ThreadTeam() = default;
  /// Waits for the end of all threads. No run() may be in progress.
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// The team of this process. A process that was forked begins with a new one.
  static ThreadTeam& of_process();

  /// The pieces of a loop that nobody has taken yet.
  class Pieces {
   public:
    explicit Pieces(int64_t pieces) : pieces_(pieces) {}
    /// Takes a piece and returns its number; each number below `pieces` is returned once. Returns `pieces` at the end.
    int64_t next();
    bool left() const { return next_.load(std::memory_order_relaxed) < pieces_; }

   private:
    int64_t pieces_;
    std::atomic<int64_t> next_{0};
  };

  /// Calls work(pieces) on the calling thread and on at most `threads` - 1 workers, where it must take pieces until the
  /// end. Returns when all of them have returned. `work` must not throw. Any number of threads may call this at once.
  void run(int threads, int64_t pieces, const std::function<void(Pieces&)>& work);

 private:
  struct Job {
    Pieces pieces;
    const std::function<void(Pieces&)>& work;
    int places;                   // for further workers; guarded by mutex_
    int processor;                // of the caller
    std::atomic<int> working{0};  // workers that have begun and not returned
  };

  void grow(size_t workers);
  void worker();
  Job* join_job();
  void wait_for_job(uint32_t posted);
  void leave(Job& job);
  void wait_for_workers(const Job& job);

  std::mutex mutex_;
  std::vector<std::thread> threads_;   // guarded by mutex_
  std::list<Job*> jobs_;               // that workers may join; guarded by mutex_
  std::atomic<uint32_t> posted_{0};    // grows with each job; workers sleep on it
  std::atomic<uint32_t> returned_{0};  // grows when the last worker of a job returns; callers sleep on it
  std::atomic<bool> ending_{false};
};

}  // namespace attune

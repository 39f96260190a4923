#pragma once
// The thread that makes the steps of a scheduler.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "attune/inference/decoding/scheduler.h"
#include "attune/serve/fair_queue.h"

namespace attune::serve {

/// Requests that wait for a worker, and those that it works on.
struct WorkerLoad {
  int64_t waiting = 0, running = 0;
};

/// Feeds a scheduler and drives it. Clients take turns (see FairQueue). Groups with running requests share three
/// quarters of the places. A group without them may take any place, so it enters within two steps if a place is free,
/// the cache has memory, and not too many have gone before the same request that waits (see Scheduler).
class DecodingWorker {
 public:
  struct Options {
    int64_t places = 64;  // requests that the scheduler has at once
    int64_t threads = 0;  // of a step; 0: default_thread_count()
  };
  /// The scheduler has to outlive the worker, and nobody else may drive it.
  DecodingWorker(Scheduler& scheduler, const Options& options);
  DecodingWorker(const DecodingWorker&) = delete;
  DecodingWorker& operator=(const DecodingWorker&) = delete;
  /// As stop().
  ~DecodingWorker();

  /// Ends all requests with what they have so far. None may follow.
  void stop();

  /// Thread-safe. on_done of each request is called once, on the worker's thread, with an error too where the scheduler
  /// refuses the request. A request that is cancelled or past its deadline ends within a step, also while it waits.
  void add(const std::string& key, std::vector<DecodingRequest> requests);
  WorkerLoad load() const;

 private:
  using Queue = FairQueue<DecodingRequest>;
  struct Arrival {
    std::string key;
    std::shared_ptr<Queue::Group> group;
  };
  void run();
  bool receive();
  void feed();
  bool large_groups_at_work() const { return running_ > groups_at_work_; }
  void submit(DecodingRequest request, const std::shared_ptr<Queue::Group>& group);

  Scheduler& scheduler_;
  const Options options_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Arrival> arrivals_;           // guarded by mutex_
  std::atomic<bool> has_arrivals_{false};  // whether there are any
  Queue queue_;                            // of the worker's thread, as is what follows
  int64_t running_ = 0, groups_at_work_ = 0;
  std::atomic<int64_t> waiting_shown_{0}, running_shown_{0};  // for load()
  std::thread thread_;                                        // last: it uses all of them
};

}  // namespace attune::serve

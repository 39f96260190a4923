#pragma once
// A thread for work that is not a model's own.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "attune/serve/fair_queue.h"

namespace attune::serve {

/// Runs tasks one after the other. Keys take turns, see FairQueue.
class FairTasks {
 public:
  using Task = std::function<void()>;

  FairTasks();
  FairTasks(const FairTasks&) = delete;
  FairTasks& operator=(const FairTasks&) = delete;
  /// As stop().
  ~FairTasks();

  /// Thread-safe. The task must not throw.
  void add(const std::string& key, Task task);
  /// Drops the tasks that wait, and returns when the one at work is done. None may be added afterwards.
  void stop();

 private:
  using Queue = FairQueue<Task>;
  void run();

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Queue queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of them
};

}  // namespace attune::serve

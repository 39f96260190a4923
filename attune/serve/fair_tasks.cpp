#include "attune/serve/fair_tasks.h"

#include <utility>

#include "attune/base/parallel.h"

namespace attune::serve {

FairTasks::FairTasks() : thread_([this] { run(); }) {}

FairTasks::~FairTasks() {
  stop();
}

void FairTasks::add(const std::string& key, Task task) {
  const auto group = std::make_shared<Queue::Group>();
  group->items.push_back(std::move(task));
  {
    const std::lock_guard lock(mutex_);
    queue_.add(key, group);
  }
  changed_.notify_one();
}

void FairTasks::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  queue_ = {};
}

void FairTasks::run() {
  const ThreadScope threads(1);  // the others are for the models
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      task = std::move(queue_.next()->first);
    }
    task();
  }
}

}  // namespace attune::serve

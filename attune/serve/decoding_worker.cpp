#include "attune/serve/decoding_worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "attune/base/parallel.h"
#include "attune/serve/is_over.h"

namespace attune::serve {

DecodingWorker::DecodingWorker(Scheduler& scheduler, const Options& options)
    : scheduler_(scheduler), options_(options), thread_([this] { run(); }) {}

DecodingWorker::~DecodingWorker() {
  stop();
}

void DecodingWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DecodingWorker::add(const std::string& key, std::vector<DecodingRequest> requests) {
  const auto group = std::make_shared<Queue::Group>();
  for (DecodingRequest& request : requests) {
    request.interrupt = &stopping_;
    group->items.push_back(std::move(request));
  }
  {
    const std::lock_guard lock(mutex_);
    arrivals_.push_back({key, group});
    has_arrivals_ = true;
    waiting_shown_ += static_cast<int64_t>(requests.size());
  }
  arrived_.notify_one();
}

WorkerLoad DecodingWorker::load() const {
  return {.waiting = waiting_shown_, .running = running_shown_};
}

// Waits for work and queues what has arrived. Returns false at the end. If memory runs out, what is not queued yet
// stays in arrivals_.
bool DecodingWorker::receive() {
  std::unique_lock lock(mutex_);
  if (running_ == 0 && queue_.empty()) {
    arrived_.wait(lock, [&] { return stopping_ || !arrivals_.empty(); });
    if (arrivals_.empty()) return false;
  }
  for (; !arrivals_.empty(); arrivals_.pop_front()) queue_.add(arrivals_.front().key, arrivals_.front().group);
  has_arrivals_ = false;
  return true;
}

void DecodingWorker::submit(DecodingRequest request, const std::shared_ptr<Queue::Group>& group) {
  --waiting_shown_;
  ++running_shown_;
  request.at_once = group->running == 1 && large_groups_at_work();
  ++running_;
  if (group->running == 1) ++groups_at_work_;
  auto on_done = [this, group, then = std::move(request.on_done)](DecodingResult&& result) {
    if (--group->running == 0) --groups_at_work_;
    --running_;
    --running_shown_;
    then(std::move(result));
  };
  try {
    request.on_done = on_done;
    scheduler_.submit(std::move(request));
  } catch (...) {
    on_done({.error = std::current_exception()});
  }
}

void DecodingWorker::feed() {
  // What is over needs no place: the scheduler ends it at once.
  const auto over = [&](const Queue::Group& group) { return stopping_ || is_over(group.items.front()); };
  while (auto taken = queue_.next(over)) submit(std::move(taken->first), taken->second);
  const int64_t share = std::max<int64_t>(1, options_.places * 3 / 4);
  const auto has_place = [&](const Queue::Group& group) { return group.running == 0 || running_ < share; };
  while (running_ < options_.places) {
    auto taken = queue_.next(has_place);
    if (!taken) return;
    submit(std::move(taken->first), taken->second);
  }
}

void DecodingWorker::run() {
  const ThreadScope threads(options_.threads);
  for (;;) {
    try {
      if (!receive()) return;
      feed();
    } catch (const std::bad_alloc&) {  // the requests wait: memory may come back, also from those that run
      if (running_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    try {
      // While large groups are at work, drive() returns early for new requests: they need not wait for several steps.
      if (running_ > 0) scheduler_.drive(large_groups_at_work() ? &has_arrivals_ : nullptr);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace attune::serve

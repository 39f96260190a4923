#include "attune/serve/decoding_worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "attune/base/parallel.h"

namespace attune::serve {
namespace {

// Whether a request has to end. It needs no place then: the scheduler ends it at once.
bool is_over(const DecodingRequest& request) {
  return (request.cancel != nullptr && request.cancel->load()) ||
         (request.deadline && std::chrono::steady_clock::now() >= *request.deadline);
}

}  // namespace

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
  waiting_shown_ += static_cast<int64_t>(requests.size());
  {
    const std::lock_guard lock(mutex_);
    arrivals_.push_back({key, group});
    has_arrivals_ = true;
  }
  arrived_.notify_one();
}

WorkerLoad DecodingWorker::load() const {
  return {.waiting = waiting_shown_, .running = running_shown_};
}

// Waits for work; false at the end.
bool DecodingWorker::receive() {
  std::vector<Arrival> arrivals;
  {
    std::unique_lock lock(mutex_);
    if (running_ == 0 && queue_.empty()) {
      arrived_.wait(lock, [&] { return stopping_ || !arrivals_.empty(); });
      if (arrivals_.empty()) return false;
    }
    std::swap(arrivals, arrivals_);
    has_arrivals_ = false;
  }
  for (Arrival& arrival : arrivals) queue_.add(arrival.key, std::move(arrival.group));
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
  while (receive()) {
    try {
      feed();
      // While large groups are at work, drive() returns early for new requests: they need not wait for several steps.
      if (running_ > 0) scheduler_.drive(large_groups_at_work() ? &has_arrivals_ : nullptr);
    } catch (const std::bad_alloc&) {  // for the requests that wait, memory may come back
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace attune::serve

#include "attune/serve/encoder_worker.h"

#include <algorithm>
#include <new>
#include <utility>

#include "attune/base/execution.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/is_over.h"

namespace attune::serve {
namespace {

const std::exception_ptr& late() {
  static const std::exception_ptr error = std::make_exception_ptr(deadline_error());
  return error;
}

// Ends a request of which is_over() is true; where its client has gone, nobody reads this.
void end_late(const EncoderRequest& request) {
  request.on_done({}, late());
}

}  // namespace

EncoderWorker::EncoderWorker(Encode encode, const Options& options)
    : encode_(std::move(encode)), options_(options), thread_([this] { run(); }) {}

EncoderWorker::~EncoderWorker() {
  stop();
}

void EncoderWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
  const auto stopped = std::make_exception_ptr(HttpError(503, "the server is stopping"));
  Queue left;
  {
    const std::lock_guard lock(mutex_);  // somebody may ask for load() meanwhile
    std::swap(left, queue_);
  }
  while (auto taken = left.next()) taken->first.on_done({}, stopped);
}

void EncoderWorker::add(const std::string& key, std::vector<EncoderRequest> requests) {
  const auto group = std::make_shared<Queue::Group>();
  for (EncoderRequest& request : requests) group->items.push_back(std::move(request));
  {
    const std::lock_guard lock(mutex_);
    queue_.add(key, group);
  }
  arrived_.notify_one();
}

WorkerLoad EncoderWorker::load() const {
  const std::lock_guard lock(mutex_);
  return {.waiting = queue_.size(), .running = running_};
}

// Takes the next batch. Requests that are over come with it, wherever they wait, and do not count for its size. False:
// the worker is to stop. Where it throws std::bad_alloc, what it has taken is in the batch.
bool EncoderWorker::next_batch(std::vector<EncoderRequest>& batch) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  if (stopping_) return false;
  const auto take = [&](auto&& may_run) {
    EncoderRequest& place = batch.emplace_back();  // before a request is taken: none is lost if memory runs out
    auto taken = queue_.next(may_run);
    if (taken)
      place = std::move(taken->first);
    else
      batch.pop_back();
    return taken.has_value();
  };
  while (take([](const Queue::Group& group) { return is_over(group.items.front()); })) continue;
  int64_t tokens = 0;
  for (running_ = 0; running_ < options_.batch_texts && tokens < options_.batch_tokens; ++running_) {
    if (!take([](const Queue::Group&) { return true; })) break;
    tokens += static_cast<int64_t>(batch.back().text.ids.size());
  }
  return true;
}

// Runs the encoder and ends the requests. If it fails, the texts are tried again one by one, so that the error of one
// text is not an error of the others. If all requests are over meanwhile, the model gives up between two layers.
void EncoderWorker::encode(std::span<EncoderRequest> batch) {
  std::vector<std::vector<float>> numbers;
  try {
    std::vector<Encoding> texts;
    for (const EncoderRequest& request : batch) texts.push_back(request.text);
    const auto all_are_over = [&] {
      return std::ranges::all_of(batch, [](const auto& request) { return is_over(request); });
    };
    const ExecutionScope scope([&](Execution& e) { e.unwanted = all_are_over; });
    numbers = encode_(texts);
  } catch (const Interrupted&) {
    std::ranges::for_each(batch, end_late);
    return;
  } catch (...) {
    if (batch.size() == 1) return batch.front().on_done({}, std::current_exception());
  }
  if (numbers.empty()) {
    for (size_t i = 0; i < batch.size(); ++i) encode(batch.subspan(i, 1));
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) batch[i].on_done(std::move(numbers[i]), nullptr);
}

void EncoderWorker::run() {
  const ThreadScope threads(options_.threads);
  late();  // makes the error now, while there is memory for it
  std::vector<EncoderRequest> batch;
  for (;;) {
    try {
      if (!next_batch(batch)) return;
    } catch (const std::bad_alloc&) {  // for the requests that wait, memory may come back
      if (batch.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::erase_if(batch, [](const EncoderRequest& request) {
      const bool over = is_over(request);
      if (over) end_late(request);
      return over;
    });
    if (!batch.empty()) encode(batch);
    batch.clear();
    running_ = 0;
  }
}

}  // namespace attune::serve

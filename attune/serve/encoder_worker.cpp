#include "attune/serve/encoder_worker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attune/base/execution.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

bool is_over(const EncoderRequest& request) {
  return (request.cancel != nullptr && request.cancel->load()) ||
         (request.deadline && std::chrono::steady_clock::now() >= *request.deadline);
}

// Ends a request of which is_over() is true; where its client has gone, nobody reads this.
void end_late(const EncoderRequest& request) {
  request.on_done({}, std::make_exception_ptr(HttpError(504, "the time for this request is over", "", "timeout")));
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

// Takes the next batch. Requests that are over come with it, wherever they wait, and do not count for its size. Empty:
// the worker is to stop.
std::vector<EncoderRequest> EncoderWorker::next_batch() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  std::vector<EncoderRequest> over, batch;
  int64_t tokens = 0;
  const auto first_is_over = [](const Queue::Group& group) { return is_over(group.items.front()); };
  while (auto taken = stopping_ ? std::nullopt : queue_.next(first_is_over)) over.push_back(std::move(taken->first));
  while (!stopping_ && static_cast<int64_t>(batch.size()) < options_.batch_texts && tokens < options_.batch_tokens) {
    auto taken = queue_.next();
    if (!taken) break;
    tokens += static_cast<int64_t>(taken->first.text.ids.size());
    batch.push_back(std::move(taken->first));
  }
  running_ = static_cast<int64_t>(batch.size());
  batch.insert(batch.end(), std::make_move_iterator(over.begin()), std::make_move_iterator(over.end()));
  return batch;
}

// Runs the encoder and ends the requests. If it fails, the texts are tried again one by one, so that the error of one
// text is not an error of the others. If all requests are over meanwhile, the model gives up between two layers.
void EncoderWorker::encode(std::vector<EncoderRequest>& batch) {
  std::vector<Encoding> texts;
  for (const EncoderRequest& request : batch) texts.push_back(request.text);
  std::vector<std::vector<float>> numbers;
  try {
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
    for (EncoderRequest& request : batch) {
      std::vector<EncoderRequest> alone;
      alone.push_back(std::move(request));
      encode(alone);
    }
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) batch[i].on_done(std::move(numbers[i]), nullptr);
}

void EncoderWorker::run() {
  const ThreadScope threads(options_.threads);
  for (;;) {
    std::vector<EncoderRequest> batch = next_batch();
    if (batch.empty()) return;
    std::erase_if(batch, [](const EncoderRequest& request) {
      const bool over = is_over(request);
      if (over) end_late(request);
      return over;
    });
    if (!batch.empty()) encode(batch);
    running_ = 0;
  }
}

}  // namespace attune::serve

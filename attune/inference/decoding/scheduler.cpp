#include "attune/inference/decoding/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/parallel_tasks.h"
#include "attune/base/process_memory.h"
#include "attune/inference/decoding/active_request.h"
#include "attune/inference/decoding/decoding_lane.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/cuda_memory.h"

namespace attune {
namespace {

// Of one step of a lane. Batches bound sequences; these bound what their beams make of them.
constexpr int64_t kMostRows = 4096;
constexpr int64_t kMostLogits = int64_t{1} << 27;

// Of requests that enter at once: so many go before the same one that waits, and no more until it has entered.
constexpr int64_t kMostOvertaking = 64;

using Requests = std::vector<std::unique_ptr<ActiveRequest>>;

// A lane and what is kept of the memory budget for it. The caches hold on to their memory while there are requests, so
// that a lane takes the larger of what it has and of what its requests can come to need.
struct LaneSlot {
  DecodingLane lane;
  int64_t requests = 0, sequences = 0, source_tokens = 0;     // at work
  int64_t rows = 0;                                           // of logits that a step of all of them can come to
  bool single = false;                                        // whether its newest request wants to be alone
  int64_t past_bytes = 0, source_bytes = 0, draft_bytes = 0;  // that its requests can come to need
  CacheUse use = {};                                          // when it was last looked at
  Requests entering = {};                                     // counted, but not yet in the lane

  explicit LaneSlot(const DecodingModel& model) : lane(model) {}

  int64_t committed(int64_t more_past = 0, int64_t more_source = 0, int64_t more_draft = 0) const {
    return std::max(use.past, past_bytes + more_past) + std::max(use.source, source_bytes + more_source) + use.draft +
           draft_bytes + more_draft;
  }
  int64_t committed_with(const ActiveRequest& a) const {
    return committed(a.past_bytes, a.source_bytes, a.draft_bytes);
  }
  void count(const ActiveRequest& a, int64_t sign) {
    requests += sign;
    sequences += sign * a.strategy->sequences();
    source_tokens += sign * static_cast<int64_t>(a.request.source.size());
    rows += sign * a.most_rows;
    past_bytes += sign * a.past_bytes;
    source_bytes += sign * a.source_bytes;
    draft_bytes += sign * a.draft_bytes;
    if (sign > 0) single = a.request.batch.sequences == 1;
  }
  void enter() {
    lane.enter(std::move(entering));
    entering.clear();
  }
  // A request of any beam has room where there is no other.
  bool has_room_for(const ActiveRequest& a, int64_t vocab) const {
    const BatchLimits& limits = a.request.batch;
    if (requests == 0) return true;
    if (rows + a.most_rows > most_rows_of_step(vocab)) return false;
    if (a.request.at_once) return true;
    return sequences + a.strategy->sequences() <= limits.sequences &&
           source_tokens + static_cast<int64_t>(a.request.source.size()) <= limits.source_tokens;
  }
};

}  // namespace

class Scheduler::Impl {
 public:
  Impl(std::shared_ptr<const DecodingModel> model, const SchedulerOptions& options)
      : model_(std::move(model)),
        budget_(options.cache_bytes > 0 ? options.cache_bytes : cache_memory(options.device.value_or(Cpu{})) / 4 * 3),
        precision_(options.precision),
        on_host_(options.device.value_or(Cpu{}).is_host()) {
    if (options.cache_bytes < 0) fail<ConfigError>("cache_bytes = {}: needs a number from 0", options.cache_bytes);
  }

  uint64_t submit(DecodingRequest request);
  void drive(const std::atomic<bool>* return_soon);
  SchedulerState state() const;
  const DecodingModel& model() const { return *model_; }

 private:
  using Queue = std::deque<std::unique_ptr<ActiveRequest>>;

  Queue::iterator place_at_once();
  void end_in_time();
  void admit();
  void take_first(LaneSlot& slot);
  bool fits_budget(const LaneSlot& slot, const ActiveRequest& request);
  bool may_enter(size_t lane, const ActiveRequest& request, int64_t at_first);
  bool enter_next(LaneSlot& slot);
  void run_lanes(const std::atomic<bool>* return_soon);
  void collect();
  void hand_over();

  std::shared_ptr<const DecodingModel> model_;
  int64_t budget_;
  ProductPrecision precision_;
  bool on_host_;              // whether the model computes on the CPU
  mutable std::mutex mutex_;  // of all that follows, but the lanes: these are the driving thread's
  std::condition_variable changed_;
  bool driving_ = false;
  uint64_t round_ = 0, next_id_ = 1;
  Queue queue_;
  std::deque<LaneSlot> lanes_;  // do not move
  Requests done_;               // to be handed over, by the next call where this one throws; the driving thread's
};

// Where a request that enters at once goes: before the first ordinary request that may still be overtaken. Those that
// may not are in front of that one, since a request is always overtaken together with all that wait behind it.
Scheduler::Impl::Queue::iterator Scheduler::Impl::place_at_once() {
  return std::find_if(queue_.begin(), queue_.end(),
                      [](const auto& a) { return !a->request.at_once && a->overtaken < kMostOvertaking; });
}

uint64_t Scheduler::Impl::submit(DecodingRequest request) {
  auto a = std::make_unique<ActiveRequest>();
  a->strategy = make_strategy(*model_, request);
  a->most_rows = a->strategy->most_rows();
  const auto source_tokens = static_cast<int64_t>(request.source.size());
  a->past_bytes = model_->cache_bytes(a->strategy->most_tokens(*model_), 0);
  a->source_bytes = model_->cache_bytes(0, source_tokens);
  if (const auto& draft = a->strategy->draft(); draft != nullptr)
    a->draft_bytes = draft->cache_bytes(a->strategy->most_tokens(*draft), source_tokens);
  a->request = std::move(request);
  if (const int64_t bytes = a->past_bytes + a->source_bytes + a->draft_bytes; bytes > budget_)
    fail<TooManyBytes>("request: its cache may come to {} bytes, cache_bytes = {}", bytes, budget_);
  const std::lock_guard lock(mutex_);
  a->id = next_id_++;
  const uint64_t id = a->id;
  auto place = queue_.end();
  if (a->request.at_once) {
    place = place_at_once();
    std::for_each(place, queue_.end(), [](const auto& later) { ++later->overtaken; });
  }
  queue_.insert(place, std::move(a));
  return id;
}

SchedulerState Scheduler::Impl::state() const {
  const std::lock_guard lock(mutex_);
  SchedulerState state{.waiting = static_cast<int64_t>(queue_.size())};
  for (const LaneSlot& slot : lanes_) {
    state.active += slot.requests;
    state.cache_bytes += slot.use.past + slot.use.source + slot.use.draft;
    state.reserved_bytes += slot.past_bytes + slot.source_bytes + slot.draft_bytes;
    state.slots_in_use += slot.use.slots_in_use;
  }
  return state;
}

// Ends the waiting requests that are cancelled or past their deadline.
void Scheduler::Impl::end_in_time() {
  done_.reserve(done_.size() + queue_.size());
  for (auto& a : queue_) a->end_in_time();
  for (auto& a : queue_)
    if (a->over) done_.push_back(std::move(a));
  std::erase(queue_, nullptr);
}

bool Scheduler::Impl::fits_budget(const LaneSlot& slot, const ActiveRequest& request) {
  int64_t sum = 0;
  for (const LaneSlot& other : lanes_) sum += &other == &slot ? slot.committed_with(request) : other.committed();
  return sum <= budget_;
}

// `at_first`: the sequences that were there before anybody entered. The encoder reads several sources at once: they
// enter when there is room for a quarter of a batch.
bool Scheduler::Impl::may_enter(size_t lane, const ActiveRequest& a, int64_t at_first) {
  const LaneSlot& slot = lanes_[lane];
  const BatchLimits& limits = a.request.batch;
  if (limits.lanes > 0 && static_cast<int64_t>(lane) >= limits.lanes) return false;
  const bool gathers = model_->source_vocab() > 0 && at_first > 0 && !a.request.at_once;
  if (gathers && 4 * (limits.sequences - at_first) < limits.sequences) return false;
  return slot.has_room_for(a, model_->vocab()) && fits_budget(slot, a);
}

// Lanes with room take turns, so that each has long requests and short ones. A device other than the CPU does one step
// at a time, and the more rows it has the better: one lane.
void Scheduler::Impl::admit() {
  const auto lanes = static_cast<size_t>(on_host_ ? std::max(1, thread_count()) : 1);
  while (lanes_.size() < lanes) lanes_.emplace_back(*model_);
  std::vector<int64_t> at_first;
  for (size_t i = 0; i < lanes; ++i) at_first.push_back(lanes_[i].sequences);
  // A request that enters even a full batch goes to the lane with the fewest sequences.
  const auto is_shortest = [&](size_t lane, const BatchLimits& limits) {
    const auto all = static_cast<int64_t>(lanes);
    return std::none_of(lanes_.begin(), lanes_.begin() + (limits.lanes > 0 ? std::min(limits.lanes, all) : all),
                        [&](const LaneSlot& other) { return other.sequences < lanes_[lane].sequences; });
  };
  const auto fill = [&] {
    bool entered = false;
    for (bool any = true; any && !queue_.empty();) {
      any = false;
      for (size_t i = 0; i < lanes && !queue_.empty(); ++i) {
        const ActiveRequest& next = *queue_.front();
        if (!may_enter(i, next, at_first[i])) continue;
        if (next.request.at_once && !is_shortest(i, next.request.batch)) continue;
        take_first(lanes_[i]);
        any = entered = true;
      }
    }
    return entered;
  };
  if (!fill() && !queue_.empty()) {
    // The memory that empty lanes keep may be what the first request lacks.
    for (LaneSlot& slot : lanes_) {
      if (slot.requests > 0) continue;
      slot.lane.release();
      slot.use = {};
    }
    fill();
  }
}

// Nothing that can throw comes after the request has left the queue.
void Scheduler::Impl::take_first(LaneSlot& slot) {
  slot.entering.push_back(std::move(queue_.front()));
  queue_.pop_front();
  slot.count(*slot.entering.back(), 1);
}

// Gives a lane that is done with its single request the next one, while other lanes go on with theirs.
bool Scheduler::Impl::enter_next(LaneSlot& slot) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return false;
    const BatchLimits& limits = queue_.front()->request.batch;
    if (limits.sequences != 1 || limits.lanes > 0 || !fits_budget(slot, *queue_.front())) return false;
    take_first(slot);
  }
  slot.enter();
  return slot.lane.busy();
}

// Each lane that is at work runs on one thread; where there is only one, it has all of them.
void Scheduler::Impl::run_lanes(const std::atomic<bool>* return_soon) {
  std::vector<LaneSlot*> active;
  bool single = true;
  for (LaneSlot& slot : lanes_) {
    if (!slot.lane.busy()) continue;
    active.push_back(&slot);
    single = single && slot.single;
  }
  // Steps of a lane before the threads wait for each other.
  const int64_t steps = active.size() == 1 ? 1 : single ? 32 : 8;
  const auto goes_on = [&](LaneSlot& slot, int64_t done) {
    if (done == steps || (done > 0 && return_soon != nullptr && *return_soon)) return false;
    return slot.lane.busy() || (steps > 1 && enter_next(slot));
  };
  parallel_tasks(static_cast<int64_t>(active.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      LaneSlot& slot = *active[static_cast<size_t>(i)];
      for (int64_t n = 0; goes_on(slot, n); ++n) slot.lane.step();
    }
  });
}

void Scheduler::Impl::collect() {
  for (LaneSlot& slot : lanes_) {
    slot.use = slot.lane.cache_use();
    done_.reserve(done_.size() + static_cast<size_t>(slot.requests));
    for (auto& a : slot.lane.take_done()) {
      slot.count(*a, -1);
      done_.push_back(std::move(a));
    }
  }
}

// All requests get their results, even if the on_done of one throws.
void Scheduler::Impl::hand_over() {
  std::exception_ptr error;
  for (const auto& a : std::exchange(done_, {})) {
    if (!a->request.on_done) continue;
    DecodingResult result;
    try {
      result = a->result();
    } catch (...) {
      result = {.error = std::current_exception()};
    }
    try {
      a->request.on_done(std::move(result));
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void Scheduler::Impl::drive(const std::atomic<bool>* return_soon) {
  std::unique_lock lock(mutex_);
  if (driving_) {
    changed_.wait(lock, [&, round = round_] { return !driving_ || round_ != round; });
    return;
  }
  driving_ = true;
  lock.unlock();
  struct Release {
    Impl& impl;
    ~Release() {
      const std::lock_guard end(impl.mutex_);
      impl.driving_ = false;
      ++impl.round_;
      impl.changed_.notify_all();
    }
  };
  const Release release{*this};
  // Of the settings of the driving thread, only the number of threads counts.
  const ExecutionScope scope([](Execution& e) {
    e.recording = false;
    e.dropout = {};
  });
  const ProductPrecisionScope precision(precision_);
  {
    const std::lock_guard held(mutex_);
    end_in_time();
    admit();
  }
  std::vector<LaneSlot*> entering;
  for (LaneSlot& slot : lanes_)
    if (!slot.entering.empty()) entering.push_back(&slot);
  parallel_tasks(static_cast<int64_t>(entering.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) entering[static_cast<size_t>(i)]->enter();
  });
  run_lanes(return_soon);
  {
    const std::lock_guard held(mutex_);
    collect();
  }
  hand_over();
}

int64_t most_rows_of_step(int64_t vocab) {
  return std::max<int64_t>(1, std::min(kMostRows, kMostLogits / vocab));
}

int64_t cache_memory(const Device& device) {
  return device.kind() == Device::Kind::cuda ? free_bytes_of(Cuda{device.index()}) : process_memory_limit();
}

Scheduler::Scheduler(std::shared_ptr<const DecodingModel> model, const SchedulerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Scheduler::~Scheduler() = default;
uint64_t Scheduler::submit(DecodingRequest request) {
  return impl_->submit(std::move(request));
}
void Scheduler::drive(const std::atomic<bool>* return_soon) {
  impl_->drive(return_soon);
}
SchedulerState Scheduler::state() const {
  return impl_->state();
}
const DecodingModel& Scheduler::model() const {
  return impl_->model();
}

struct SchedulerClient::Inbox {
  std::mutex mutex;
  std::vector<std::pair<size_t, DecodingResult>> done;
  std::atomic<bool> cancelled = false;
};

SchedulerClient::SchedulerClient(Scheduler& scheduler) : scheduler_(scheduler), inbox_(std::make_shared<Inbox>()) {}

SchedulerClient::~SchedulerClient() {
  cancel();
  try {
    while (outstanding_ > 0) work();
  } catch (...) {
    return;  // out of memory: the results find the inbox, and nobody there
  }
}

void SchedulerClient::submit(size_t tag, DecodingRequest request) {
  request.cancel = std::shared_ptr<const std::atomic<bool>>(inbox_, &inbox_->cancelled);
  request.on_done = [inbox = inbox_, tag](DecodingResult&& result) {
    const std::lock_guard lock(inbox->mutex);
    inbox->done.emplace_back(tag, std::move(result));
  };
  scheduler_.submit(std::move(request));
  ++outstanding_;
}

void SchedulerClient::cancel() {
  inbox_->cancelled = true;
}

std::vector<std::pair<size_t, DecodingResult>> SchedulerClient::work() {
  if (outstanding_ > 0) scheduler_.drive();
  const std::lock_guard lock(inbox_->mutex);
  outstanding_ -= static_cast<int64_t>(inbox_->done.size());
  return std::exchange(inbox_->done, {});
}

}  // namespace attune

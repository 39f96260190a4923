#pragma once
// Everything that is generated with one model at a time.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attune/inference/decoding_request.h"
#include "attune/inference/scheduler_options.h"

namespace attune {

/// What a scheduler has to do, and what that takes.
struct SchedulerState {
  int64_t waiting = 0;         // requests that are not yet admitted
  int64_t active = 0;          // requests at work
  int64_t cache_bytes = 0;     // of all caches, with what is free to be used again
  int64_t reserved_bytes = 0;  // the most that the requests at work can come to need
  int64_t slots_in_use = 0;    // tokens that the caches hold, those of sources included
};

/// Decodes requests of any kind together: they enter and leave at every step. Prompts are read in pieces of
/// kPromptPiece tokens beside the steps of those who generate. What a request gives never depends on what else is there
/// and on the number of threads.
///
/// Safe to use from several threads. There is no thread of its own: whoever waits for results calls drive(), and one
/// of those who do so works for all. Requests are admitted in the order in which they came.
class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<const DecodingModel> model, const SchedulerOptions& options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  /// Requests that are not done are dropped without a result.
  ~Scheduler();

  /// Returns the id of the request. Throws ConfigError for options that do not fit, DataError for a source or prompt
  /// that does not, and ConfigError naming both numbers when the request could need more than cache_bytes.
  uint64_t submit(DecodingRequest request);

  /// Makes some steps where no other thread does, else waits until it has made some. Returns at once when there is
  /// nothing to do. Calls on_token (of different requests perhaps from several threads at once) and on_done (from the
  /// calling thread) of the requests, whoever they are from.
  void drive();

  SchedulerState state() const;
  const DecodingModel& model() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The requests of one caller. What is not done when it goes out of scope is cancelled.
class SchedulerClient {
 public:
  explicit SchedulerClient(Scheduler& scheduler);
  SchedulerClient(const SchedulerClient&) = delete;
  SchedulerClient& operator=(const SchedulerClient&) = delete;
  ~SchedulerClient();

  /// `tag` comes back with the result. Takes the request's `cancel` and `on_done`. Throws as Scheduler::submit() does.
  void submit(size_t tag, DecodingRequest request);
  /// All that is not done ends with what there is.
  void cancel();
  /// Submitted, and not yet returned by work().
  int64_t outstanding() const { return outstanding_; }
  /// Drives the scheduler, and returns what is done since the last call. Errors of requests are in their results.
  std::vector<std::pair<size_t, DecodingResult>> work();

 private:
  struct Inbox;
  Scheduler& scheduler_;
  std::shared_ptr<Inbox> inbox_;  // outlives this where a result comes late
  int64_t outstanding_ = 0;
};

}  // namespace attune

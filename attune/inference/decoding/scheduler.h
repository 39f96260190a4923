#pragma once
// Generates text with one model for many requests at once.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attune/base/error.h"
#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/decoding/scheduler_options.h"

namespace attune {

/// A request could need more than SchedulerOptions::cache_bytes.
class TooManyBytes : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// The requests of a scheduler, and the memory of its caches.
struct SchedulerState {
  int64_t waiting = 0;         // requests that are not yet admitted
  int64_t active = 0;          // requests at work
  int64_t cache_bytes = 0;     // of all caches, free slots included
  int64_t reserved_bytes = 0;  // the most that the active requests can come to need
  int64_t slots_in_use = 0;    // tokens that the caches hold, those of sources included
};

/// Decodes requests of any kind together: they enter and leave at every step. Prompts are read in pieces of
/// kPromptPiece tokens, about one piece a step. A request's result never depends on other requests or on the number of
/// threads. Work whose requests have all ended is given up between two layers of the model.
///
/// Safe to use from several threads. It has no thread of its own: a caller that waits for results calls drive(), and
/// one of these callers does the work of all. Requests are admitted in the order in which they were submitted, those
/// that are to enter at once before the others: at most 64 of them before the same one, which would else wait for ever.
class Scheduler {
 public:
  /// `options.device` is where the model computes.
  explicit Scheduler(std::shared_ptr<const DecodingModel> model, const SchedulerOptions& options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  /// Drops requests that are not done, without a result.
  ~Scheduler();

  /// Returns the id of the request. Throws ConfigError for options that do not fit, DataError for a source or prompt
  /// that does not, and TooManyBytes naming both numbers when the request could need more than cache_bytes.
  uint64_t submit(DecodingRequest request);

  /// Makes some steps, or waits until another thread that is making steps has made some. Returns at once when there is
  /// nothing to do. Calls on_token (of different requests perhaps from several threads at once) and on_done (from the
  /// calling thread) of all requests, also of other callers. `return_soon`: once it is true, no further step begins;
  /// for a caller who then has more to submit. Throws bad_alloc, and what an on_done throws; no result is lost by that.
  void drive(const std::atomic<bool>* return_soon = nullptr);

  SchedulerState state() const;
  const DecodingModel& model() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The most rows of logits that a step of several requests has for a vocabulary of so many tokens: batches bound
/// sequences, this bounds what beams, samples and drafts make of them. A single request may have more.
int64_t most_rows_of_step(int64_t vocab);

/// The bytes of a device that models and caches may take: process_memory_limit(), of a GPU what is free now.
int64_t cache_memory(const Device& device);

/// The requests of one caller. The destructor cancels those that are not done.
class SchedulerClient {
 public:
  explicit SchedulerClient(Scheduler& scheduler);
  SchedulerClient(const SchedulerClient&) = delete;
  SchedulerClient& operator=(const SchedulerClient&) = delete;
  ~SchedulerClient();

  /// `tag` comes back with the result. Takes the request's `cancel` and `on_done`. Throws as Scheduler::submit() does.
  void submit(size_t tag, DecodingRequest request);
  /// Ends all requests that are not done with what they have so far.
  void cancel();
  /// Requests that were submitted and not yet returned by work().
  int64_t outstanding() const { return outstanding_; }
  /// Drives the scheduler, and returns the results since the last call. Errors of requests are in their results.
  std::vector<std::pair<size_t, DecodingResult>> work();

 private:
  struct Inbox;
  Scheduler& scheduler_;
  std::shared_ptr<Inbox> inbox_;  // outlives this where a result comes late
  int64_t outstanding_ = 0;
};

}  // namespace attune

#pragma once
// Requests that are decoded together.

#include <cstdint>
#include <memory>
#include <vector>

#include "attune/inference/decoding/decoding_reader.h"

namespace attune {

/// Bytes that a lane's caches take now, free slots included.
struct CacheUse {
  int64_t past = 0, source = 0;  // of the model
  int64_t draft = 0;
  int64_t slots_in_use = 0;  // tokens in all of them
};

/// The requests at work in one cache (and one more for each draft). A step is one step of the model for all of them.
/// Requests may enter and leave between steps. Not for several threads at once.
class DecodingLane {
 public:
  /// The model has to outlive the lane.
  explicit DecodingLane(const DecodingModel& model);
  DecodingLane(const DecodingLane&) = delete;
  DecodingLane& operator=(const DecodingLane&) = delete;

  /// Takes the requests and reads their sources. Where that fails, they end with the error; where a request's draft
  /// fails, that request alone does.
  void enter(std::vector<std::unique_ptr<ActiveRequest>>&& requests);
  /// Reads some more tokens of every request. An error of the model ends all requests with that error.
  void step();
  /// The requests that are over since the last call.
  std::vector<std::unique_ptr<ActiveRequest>> take_done();

  bool busy() const { return !requests_.empty(); }
  const std::vector<std::unique_ptr<ActiveRequest>>& requests() const { return requests_; }
  CacheUse cache_use() const;
  /// Frees the memory of the caches; for a lane without requests.
  void release();

 private:
  void begin_step();
  void step_all();
  void settle(DecodingReader& reader);
  bool pass(DecodingReader& reader, bool source_attention);
  void choose_participants(const DecodingReader& reader, bool source_attention);
  void advance(ActiveRequest& request);
  void remove_done();
  DecodingReader& draft_reader(const std::shared_ptr<const DecodingModel>& draft);

  const DecodingModel& model_;
  std::unique_ptr<DecodingReader> main_;
  std::vector<std::unique_ptr<DecodingReader>> drafts_;
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
  std::vector<std::unique_ptr<ActiveRequest>> done_;
  std::vector<ActiveRequest*> prompts_;  // of the pass at work; kept for its memory
  int64_t step_ = 0;
  int64_t prompt_room_ = 0;            // tokens of prompts that this step may still read
  bool newcomers_read_first_ = false;  // whether prompts of which nothing is read come before the others in this step
};

}  // namespace attune

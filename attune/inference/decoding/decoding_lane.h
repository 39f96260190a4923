#pragma once
// Requests that are decoded together.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "attune/inference/decoding/decoding_strategy.h"

namespace attune {

/// A request that was admitted, with its strategy and the inputs that are not yet read.
struct ActiveRequest {
  uint64_t id = 0;
  DecodingRequest request;  // without what the strategy has taken; the source is for the encoders
  std::unique_ptr<DecodingStrategy> strategy;
  /// The most bytes that it takes in the caches: for its tokens, for its source, and in the draft's cache.
  int64_t past_bytes = 0, source_bytes = 0, draft_bytes = 0;
  int64_t most_rows = 1;  // the most hypotheses or texts at once

  RowInputs inputs;
  std::vector<int32_t> fed;  // of each row: tokens of the inputs that are read
  int64_t left = 0;          // tokens of the inputs that are not yet read
  int64_t prompt_step = -1;  // the lane's last step that read a piece of its prompt; -1: none has
  bool takes_part = false;   // in the pass at work
  ReadBy reader = ReadBy::model;
  bool fresh = false;  // true: the rows of the cache are not yet those of the inputs
  int64_t model_rows = 1, draft_rows = 1;

  bool over = false;
  std::exception_ptr error = {};               // of a request that is over
  std::optional<FinishReason> cut_short = {};  // likewise

  int64_t& rows(ReadBy by) { return by == ReadBy::model ? model_rows : draft_rows; }
  /// Why the request has to end now, if it is cancelled or past its deadline.
  std::optional<FinishReason> ending() const;
  /// Ends the request if it is cancelled or past its deadline.
  void end_in_time();
  void fail(std::exception_ptr why);
  /// Returns the result. The request must be over.
  DecodingResult result();
};

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
  ~DecodingLane();

  /// Reads the sources. Where that fails, these requests end with the error.
  void enter(std::vector<std::unique_ptr<ActiveRequest>> requests);
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
  struct Reader;
  void begin_step();
  void step_all();
  void add(Reader& reader, const std::vector<ActiveRequest*>& newcomers);
  void settle(Reader& reader);
  void apply_inputs(Reader& reader);
  bool pass(Reader& reader, bool source_attention);
  void choose_participants(Reader& reader, bool source_attention);
  void gather_inputs(Reader& reader, bool source_attention);
  void look(Reader& reader);
  void advance(ActiveRequest& request);
  void remove_done();
  Reader& draft_reader(const std::shared_ptr<const DecodingModel>& draft);

  const DecodingModel& model_;
  std::unique_ptr<Reader> main_;
  std::vector<std::unique_ptr<Reader>> drafts_;
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
  std::vector<std::unique_ptr<ActiveRequest>> done_;
  int64_t step_ = 0;
  int64_t prompt_room_ = 0;            // tokens of prompts that this step may still read
  bool newcomers_read_first_ = false;  // whether prompts of which nothing is read come before the others in this step
};

}  // namespace attune

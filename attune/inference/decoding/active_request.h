#pragma once
// A request at work.

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
  int64_t most_rows = 1;  // DecodingStrategy::most_rows()
  int64_t overtaken = 0;  // requests that were to enter at once and came before this one while it waited

  RowInputs inputs;
  std::vector<int32_t> fed;  // of each row: how many tokens of its inputs are read
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
  /// Whether a row has so many tokens left that they are read as a prompt, in pieces.
  bool reads_prompt() const;
  /// How many tokens of a row are read next.
  int32_t next_piece(size_t row) const;
  /// Why the request has to end now, if it is cancelled or past its deadline.
  std::optional<FinishReason> ending() const;
  /// Ends the request if it is cancelled or past its deadline.
  void end_in_time();
  /// Ends a request whose work was given up because it was cancelled or late, even if its flags have been reset since.
  void end_given_up();
  /// Ends the request with an error. One that is over stays as it is.
  void fail(std::exception_ptr why);
  /// Returns the result. The request must be over.
  DecodingResult result();
};

}  // namespace attune

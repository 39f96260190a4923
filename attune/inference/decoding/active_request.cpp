#include "attune/inference/decoding/active_request.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "attune/nn/attention/query_groups.h"

namespace attune {
namespace {

constexpr int32_t kShort = kQueriesByRow;  // new tokens of a row that are no prompt; a draft proposes fewer

}  // namespace

bool ActiveRequest::reads_prompt() const {
  int32_t most = 0;
  for (size_t r = 0; r < inputs.rows(); ++r) most = std::max(most, inputs.counts[r] - fed[r]);
  return most > kShort;
}

// A last piece of kShort tokens or fewer would not be read as a prompt, as the rest is: it is joined to the piece
// before.
int32_t ActiveRequest::next_piece(size_t row) const {
  const int32_t left_of_row = inputs.counts[row] - fed[row];
  return left_of_row <= kPromptPiece + kShort ? left_of_row : kPromptPiece;
}

std::optional<FinishReason> ActiveRequest::ending() const {
  if ((request.cancel != nullptr && request.cancel->load()) ||
      (request.interrupt != nullptr && request.interrupt->load()))
    return FinishReason::interrupted;
  if (request.deadline && std::chrono::steady_clock::now() >= *request.deadline) return FinishReason::deadline;
  return std::nullopt;
}

void ActiveRequest::end_in_time() {
  if (over) return;
  cut_short = ending();
  over = cut_short.has_value();
}

void ActiveRequest::end_given_up() {
  cut_short = ending().value_or(FinishReason::interrupted);
  over = true;
}

void ActiveRequest::fail(std::exception_ptr why) {
  if (over) return;
  over = true;
  error = std::move(why);
}

DecodingResult ActiveRequest::result() {
  if (error) return {.id = id, .error = error};
  try {
    DecodingResult result{.id = id, .cut_short = cut_short};
    strategy->finish(cut_short, result);
    return result;
  } catch (...) {
    return {.id = id, .error = std::current_exception()};
  }
}

}  // namespace attune

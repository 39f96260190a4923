#include "attune/inference/decoding/top_candidates.h"

#include "attune/base/fail.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_query(const CandidateRow& row, const CandidateQuery& query, size_t room) {
  const Tensor& logits = row.logits;
  if (logits.rank() != 2 || query.count < 1 || row.row < 0 || row.row >= logits.size(0) || row.size < 0 ||
      row.size > logits.size(1))
    fail<ShapeError>("top_candidates: needs logits [rows, vocab] and a count from 1, found {}, row {} of {} tokens, {}",
                     logits.shape().text(), row.row, row.size, query.count);
  const size_t wanted = query.rules == nullptr ? 0 : query.rules->wanted.size();
  if (room < static_cast<size_t>(std::min(query.count, row.size)) + wanted)
    fail<ShapeError>("top_candidates: room for {} candidates of {} and {} that are wanted", room, query.count, wanted);
  for (size_t i = 0; i < wanted; ++i) {
    if (const int32_t token = query.rules->wanted[i]; token < 0 || token >= row.size)
      fail<ShapeError>("top_candidates: wants token {} of {}", token, row.size);
  }
}

}  // namespace

size_t top_candidates(const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room) {
  check_query(row, query, room.size());
  const int64_t found =
      dispatch(row.logits.device(), [&](auto device) { return top_candidates(device, row, query, room); });
  if (found < 0) fail<NumericError>("the model's logits are not finite");
  return static_cast<size_t>(found);
}

void penalize_tokens(const CandidateRow& row, std::span<const int32_t> tokens, double penalty) {
  dispatch(row.logits.device(), [&](auto device) { penalize_tokens(device, row, tokens, penalty); });
}

}  // namespace attune

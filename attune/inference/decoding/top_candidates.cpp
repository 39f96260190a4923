#include "attune/inference/decoding/top_candidates.h"

#include <string_view>

#include "attune/base/fail.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_job(const CandidateJob& job) {
  const auto& [row, query, room, found] = job;
  const Tensor& logits = row.logits;
  if (logits.rank() != 2 || query.count < 1 || row.row < 0 || row.row >= logits.size(0) || row.size < 0 ||
      row.size > logits.size(1))
    fail<ShapeError>("top_candidates: needs logits [rows, vocab] and a count from 1, found {}, row {} of {} tokens, {}",
                     logits.shape().text(), row.row, row.size, query.count);
  const size_t wanted = query.rules == nullptr ? 0 : query.rules->wanted.size();
  if (room.size() < static_cast<size_t>(std::min(query.count, row.size)) + wanted)
    fail<ShapeError>("top_candidates: room for {} candidates of {} and {} that are wanted", room.size(), query.count,
                     wanted);
  const auto check_tokens = [&, size = row.size](std::string_view kind, std::span<const int32_t> tokens) {
    for (const int32_t token : tokens)
      if (token < 0 || token >= size)
        fail<ShapeError>("top_candidates: needs {} tokens in [0, {}), found {}", kind, size, token);
  };
  if (query.rules != nullptr) check_tokens("wanted", query.rules->wanted);
  check_tokens("penalized", query.penalized);
}

}  // namespace

void top_candidates(std::span<CandidateJob> jobs) {
  for (const CandidateJob& job : jobs) check_job(job);
  if (jobs.empty()) return;
  dispatch(jobs.front().row.logits.device(), [&](auto device) { top_candidates(device, jobs); });
}

}  // namespace attune

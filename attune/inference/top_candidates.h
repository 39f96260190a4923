#pragma once

#include "attune/kernels/top_candidates.h"

namespace attune {

/// For each row of logits [rows, vocab] its `count` likeliest tokens, likeliest first and equal ones by lower id. Those
/// in `excluded` are left out but keep their share of the probability, and so are those of probability 0, so that there
/// may be fewer. `rules` are none or one for each row. A row's answer depends on that row alone. Throws NumericError,
/// naming the row, where there is no distribution: a logit is NaN or infinite, or all are minus infinity.
void top_candidates(const Tensor& logits, int64_t count, const std::vector<int32_t>& excluded,
                    std::span<const CandidateRules> rules, CandidateLists& lists);
inline CandidateLists top_candidates(const Tensor& logits, int64_t count, const std::vector<int32_t>& excluded = {},
                                     std::span<const CandidateRules> rules = {}) {
  CandidateLists lists;
  top_candidates(logits, count, excluded, rules, lists);
  return lists;
}

}  // namespace attune

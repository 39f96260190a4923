#pragma once
// The likeliest next tokens.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

struct Candidate {
  int32_t token;
  double log_probability;  // at most 0
};

/// What holds for one row.
struct CandidateRules {
  std::vector<int32_t> excluded = {};  // beside what no row may have
  std::vector<int32_t> wanted = {};    // follow the likeliest where they are not among them, in this order
  bool only_wanted = false;            // there are no others, and none of these is excluded
};

/// For each row of logits [rows, vocab] its `count` likeliest tokens, likeliest first and equal ones by lower id. Those
/// in `excluded` are left out but keep their share of the probability, and so are those of probability 0, so that there
/// may be fewer. `rules` are none or one for each row. A row's answer depends on that row alone. Throws NumericError,
/// naming the row, where there is no distribution: a logit is NaN or infinite, or all are minus infinity.
std::vector<std::vector<Candidate>> top_candidates(const Tensor& logits, int64_t count,
                                                   const std::vector<int32_t>& excluded = {},
                                                   std::span<const CandidateRules> rules = {});

}  // namespace attune

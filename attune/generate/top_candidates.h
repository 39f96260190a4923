#pragma once
// The likeliest next tokens.

#include <cstdint>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

struct Candidate {
  int32_t token;
  double log_probability;  // at most 0
};

/// For each row of logits [rows, vocab] its `count` likeliest tokens, likeliest first and equal ones by lower id. Those
/// in `excluded` are left out but keep their share of the probability, and so are those of probability 0, so that there
/// may be fewer. A row's answer depends on that row alone. Throws NumericError, naming the row, where there is no
/// distribution: a logit is NaN or infinite, or all are minus infinity.
std::vector<std::vector<Candidate>> top_candidates(const Tensor& logits, int64_t count,
                                                   const std::vector<int32_t>& excluded = {});

}  // namespace attune

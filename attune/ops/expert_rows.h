#pragma once
// The rows of a batch in the order of the experts that work on them, and back.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Where the rows for each expert are: those of expert e are offsets[e] to offsets[e + 1] - 1, in the order of the
/// tokens. With a `unit` above 1, rows of no token follow, so that the number of rows of each expert is a multiple of
/// it.
struct ExpertRows {
  int64_t experts_per_token = 0;
  Indices places = {};                 // [tokens * experts_per_token]: the row of choice j of token t
  std::vector<int64_t> offsets = {0};  // [experts + 1]
  std::vector<int64_t> counts = {};    // [experts]: how many tokens chose the expert
  int64_t tokens() const { return experts_per_token > 0 ? places.size() / experts_per_token : 0; }
  int64_t rows() const { return offsets.back(); }
};

/// Sorts the choices chosen [tokens, k], int32, by expert. The host waits for their values. Throws ShapeError.
ExpertRows sort_by_expert(const Tensor& chosen, int64_t experts, int64_t unit = 1);

/// Copies the row of each token to its places, one for each of its experts; rows of no token are zeros.
///   x [tokens, d]   returns [rows, d]; float32, bfloat16 or float64
/// Differentiable in x. Throws ShapeError.
Tensor spread_to_experts(const Tensor& x, const ExpertRows& rows);

/// The weighted sum of each token's rows: y_t = sum over j of weights[t, j] x[place of (t, j)], in float32 or float64.
///   x [rows, d]   weights [tokens, k]   returns [tokens, d]
/// Differentiable in x and weights. Throws ShapeError.
Tensor combine_experts(const Tensor& x, const Tensor& weights, const ExpertRows& rows);

}  // namespace attune

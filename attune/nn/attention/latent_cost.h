#pragma once
// The cost of attention over cached latents in its two forms, and the choice between them.

#include <cstdint>

namespace attune {

/// Queries of one sequence over the latents of its past, or hypotheses of one sentence over the latents of its source.
struct LatentStep {
  int64_t heads = 1, d_head = 1, d_value = 1, latent_dim = 1, rotary_dim = 0;  // of the attention
  int64_t queries = 1, slots = 1;
};

struct AttentionCost {
  double operations = 0;         // floating-point: two for a multiplication and an addition
  double cached_operations = 0;  // the part of `operations` that reads the cache row by row
  double bytes = 0;              // of weights, cache, keys and values, read or written

  /// The cost as operations of a matrix product that takes as long. Measured on AVX-512: products at 150 GFLOP/s, sums
  /// over cached rows at 100 GFLOP/s, and about 4 operations in the time that a byte takes to move.
  double total() const { return operations + 0.5 * cached_operations + 4 * bytes; }
};

/// The cost of folding the decompressions into query and output, for t queries over n latents c, with H heads of d and
/// values of e, L = latent_dim, R = rotary_dim:
///   q' = q W_uk^T    2 t H d L        scores = q' c^T        2 t H n (L + R)
///   o' = weights c   2 t H n L        out = o' W_uv          2 t H L e
AttentionCost absorbed_cost(const LatentStep& step);
/// The cost of computing keys and values from the latents first:
///   k, v = c W_uk, c W_uv    2 n L H (d + e)        scores and out    2 t H n (d + e + R)
AttentionCost expanded_cost(const LatentStep& step);
/// Whether to fold the decompressions into query and output, the absorbed form. Always true for a single query.
bool absorbs(const LatentStep& step);

}  // namespace attune

#pragma once
// What attention over cached latents costs in its two forms, and which of them is taken.

#include <cstdint>

namespace attune {

/// Some queries of one sequence over the latents of its past, or the hypotheses of a sentence over those of its source.
struct LatentStep {
  int64_t heads = 1, d_head = 1, latent_dim = 1, rotary_dim = 0;  // of the attention
  int64_t queries = 1, slots = 1;
};

struct AttentionCost {
  double operations = 0;         // floating-point: two for a multiplication and an addition
  double cached_operations = 0;  // those of them that read the cache row by row
  double bytes = 0;              // of weights, cache, keys and values that are read or written

  /// Operations of a matrix product that would take as long. Measured on AVX-512: products at 150 GFLOP/s, sums over
  /// cached rows at 100, and some 4 operations while a byte is moved.
  double total() const { return operations + 0.5 * cached_operations + 4 * bytes; }
};

/// Of t queries over n latents c, with H heads of d, L = latent_dim, R = rotary_dim:
///   q' = q W_uk^T    2 t H d L        scores = q' c^T        2 t H n (L + R)
///   o' = weights c   2 t H n L        out = o' W_uv          2 t H L d
AttentionCost absorbed_cost(const LatentStep& step);
/// The same with keys and values made of the latents first:
///   k, v = c W_uk, c W_uv    4 n L H d        scores and out    2 t H n (2 d + R)
AttentionCost expanded_cost(const LatentStep& step);
/// Whether to fold the decompressions into query and output. A single query always does.
bool absorbs(const LatentStep& step);

}  // namespace attune

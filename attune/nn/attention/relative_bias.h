#pragma once

#include "attune/nn/module.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

struct RelativeBiasConfig {
  int64_t heads = 8;
  int64_t buckets = 32;        // even, at least 4
  int64_t max_distance = 128;  // larger distances have the bucket of this one; above buckets / 2
  bool bidirectional = true;   // false: a key after the query has the bucket of distance 0

  void validate() const;  // throws ConfigError naming the field and the value
};

/// The bucket of a key at `distance` = key position - query position. Half of the buckets are for one distance each,
/// the others for ranges that grow logarithmically up to max_distance. With `bidirectional` the keys after the query
/// have the second half of all buckets. Source: Raffel et al. 2020, section 2.1, and their published code.
int64_t relative_bucket(const RelativeBiasConfig& config, int64_t distance);

/// One learned number for each bucket of distances and each head, which is added to the scores of self-attention. All
/// layers of a stack share one.
class RelativeBias final : public Module {
 public:
  /// Throws ConfigError.
  explicit RelativeBias(const RelativeBiasConfig& config);
  /// By distance, for AttentionOptions::distance_bias: [2 max_distance + 1, heads]. Differentiable in the weight.
  Tensor by_distance() const;
  void visit(Visitor& v) override { v("weight", weight_); }

 private:
  Parameter weight_;  // [buckets, heads]
  Indices buckets_;   // of the distances -max_distance ... max_distance
};

}  // namespace attune

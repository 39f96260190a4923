#pragma once
// Masks of padded batches, as in the literature. A mask keeps its structure (lengths, causal), for faster attention.

#include <optional>
#include <vector>

#include "attune/nn/attention/attention.h"

namespace [[gnu::visibility("default")]] attune {

/// Which keys each query of a padded batch [batch, length] may attend to: any combination of
///   lengths   the first lengths[b] positions of row b are tokens, the rest is padding
///   causal    query i sees keys j <= i
///   allowed   an explicit matrix, uint8 [batch or 1, queries or 1, keys], 1 = may be attended to
class Mask {
 public:
  Mask() = default;  // everything may be attended to
  static Mask of_lengths(std::vector<int32_t> lengths);
  static Mask of_causal();
  static Mask of_allowed(const Tensor& allowed);

  const std::optional<std::vector<int32_t>>& lengths() const { return lengths_; }
  bool causal() const { return causal_; }
  const Tensor& allowed() const { return allowed_; }

  /// Allows what both masks allow. Throws ShapeError when their batches differ.
  friend Mask operator&(const Mask& a, const Mask& b);

 private:
  std::optional<std::vector<int32_t>> lengths_;
  bool causal_ = false;
  Tensor allowed_;
};

/// Allows the positions of ids [batch, length] (int32) that are not `pad`. Padding only at the end of rows gives
/// lengths, padding anywhere else an explicit mask.
Mask padding_mask(const Tensor& ids, int32_t pad);

/// Query i sees keys j <= i.
Mask causal_mask();

/// How to remove the padding of a batch [batch, length] and to restore it, both with gather().
struct Packing {
  Sequences sequences;
  Indices pack;    // [total]: row of the padded batch for each packed row
  Indices unpack;  // [batch * length]: packed row for each row of the padded batch, or -1 for padding
};
Packing packing_of(int64_t batch, int64_t length, const Mask& mask);

/// The same mask for layers, which take packed queries and keys.
AttentionMask attention_mask(const Mask& mask, const Sequences& queries, const Sequences& keys);

}  // namespace attune

#pragma once
// Masks of padded batches, as the literature writes them. A mask says its structure, so that the fast path is chosen.

#include <optional>
#include <vector>

#include "attune/nn/attention.h"

namespace [[gnu::visibility("default")]] attune {

/// Which keys each query of a padded batch [batch, length] may attend to: some of
///   lengths   the first n positions of each row are there, the rest is padding
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

  /// Both at once. Throws ShapeError when their batches differ.
  friend Mask operator&(const Mask& a, const Mask& b);

 private:
  std::optional<std::vector<int32_t>> lengths_;
  bool causal_ = false;
  Tensor allowed_;
};

/// The positions of ids [batch, length] (int32) that are not `pad`. Padding at the end of rows gives lengths, padding
/// anywhere else an explicit mask.
Mask padding_mask(const Tensor& ids, int32_t pad);

/// Query i sees keys j <= i.
Mask causal_mask();

/// Where the rows of a padded batch [batch, length] go when only real positions are kept.
struct Packing {
  Sequences sequences;
  Indices pack;    // [total]: row of the padded batch for each packed row
  Indices unpack;  // [batch * length]: packed row, or -1
};
Packing packing_of(int64_t batch, int64_t length, const Mask& mask);

/// The mask of the packed layers for queries and keys of these batches.
AttentionMask attention_mask(const Mask& mask, const Sequences& queries, const Sequences& keys);

}  // namespace attune

#pragma once

#include <cstdint>
#include <vector>

#include "attune/cache/paged_rows.h"
#include "attune/cache/slot_lists.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

/// What one attention keeps of the past. With latent attention `keys` holds the latents and `values` is empty.
struct AttentionCache {
  PagedRows keys;
  PagedRows values;
  int64_t bytes() const { return keys.bytes() + values.bytes(); }
};

/// What decoding keeps: for each layer the past of the self-attention and what the cross-attention reads of the source.
/// Rows are hypotheses; several of them may read the same source sentence and share a past. What no row needs any more
/// makes room for what comes next.
struct KvCache {
  struct Layer {
    AttentionCache self;
    AttentionCache cross;
  };
  std::vector<Layer> layers;
  SlotLists past;    // of the self-attention
  SlotLists source;  // of the cross-attention; without one its rows are empty

  bool keep_cross_weights = false;
  /// With keep_cross_weights, after a step: what the last layer's cross-attention of each new token gave to the tokens
  /// of its source, the mean over heads; [new tokens, longest source], zeros beyond a source.
  Tensor cross_weights = {};

  int64_t rows() const { return past.rows(); }
  /// Tokens that row r has been given so far.
  int32_t position(int64_t r) const { return past.length(r); }
  /// The position that the next token of each row will have, [rows].
  Indices positions() const;
  int64_t bytes() const;

  /// Row r goes on from what was row parents[r]: rows may be doubled, dropped and reordered; no keys are moved.
  void select(const std::vector<int32_t>& parents);
  /// Row r forgets all but its first `length` tokens.
  void truncate(int64_t r, int32_t length) { past.truncate(r, length); }
};

}  // namespace attune

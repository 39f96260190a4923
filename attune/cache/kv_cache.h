#pragma once

#include <cstdint>
#include <span>
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
  int64_t token_bytes() const { return keys.row_bytes() + values.row_bytes(); }
};

/// What decoding keeps: for each layer the past of the self-attention and what the cross-attention reads of the source.
/// Rows are sequences or hypotheses; several of them may read the same source sentence and share a past. What no row
/// needs any more makes room for what comes next.
struct KvCache {
  struct Layer {
    AttentionCache self;
    AttentionCache cross;
  };
  std::vector<Layer> layers;
  SlotLists past;    // of the self-attention
  SlotLists source;  // of the cross-attention; without one its rows are empty

  int64_t rows() const { return past.rows(); }
  /// Tokens that row r has been given so far.
  int32_t position(int64_t r) const { return past.length(r); }
  /// The positions that the next counts[r] tokens of each row r will have, row after row: [sum of counts].
  Indices positions(std::span<const int32_t> counts) const;
  int64_t bytes() const;
  /// The bytes of so many tokens of the past and of so many of sources.
  int64_t bytes_of(int64_t past_tokens, int64_t source_tokens) const;

  /// Rows without tokens, after those that are there.
  void add_rows(int64_t count);
  /// Row r goes on from what was row parents[r]: rows may be doubled, dropped and reordered; no keys are moved.
  void select(std::span<const int32_t> parents);
  /// Row r forgets all but its first `length` tokens.
  void truncate(int64_t r, int32_t length) { past.truncate(r, length); }
};

}  // namespace attune

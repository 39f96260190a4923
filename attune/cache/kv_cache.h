#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attune/cache/paged_rows.h"
#include "attune/cache/slot_lists.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

/// The cache of one attention. With latent attention `keys` holds the latents and `values` is empty.
struct AttentionCache {
  PagedRows keys;
  PagedRows values;
  int64_t bytes() const { return keys.bytes() + values.bytes(); }
  int64_t token_bytes() const { return keys.row_bytes() + values.row_bytes(); }
};

/// The cache of a decoder: for each layer, the past tokens of the self-attention and the source of the cross-attention.
/// A row is a sequence or a hypothesis; several rows may read the same source sentence and share past tokens. Slots
/// that no row reads any more are used again.
struct KvCache {
  struct Layer {
    AttentionCache self;
    AttentionCache cross;
  };
  std::vector<Layer> layers;
  SlotLists past;    // of the self-attention
  SlotLists source;  // of the cross-attention; its rows are empty if there is none

  int64_t rows() const { return past.rows(); }
  /// The number of tokens of row r so far: the position of its next one.
  int32_t position(int64_t r) const { return past.length(r); }
  /// The positions of the next counts[r] tokens of each row r, row after row: [sum of counts].
  Indices positions(std::span<const int32_t> counts) const;
  int64_t bytes() const;
  /// The bytes that this many past tokens and this many source tokens take.
  int64_t bytes_of(int64_t past_tokens, int64_t source_tokens) const;

  /// Appends `count` rows without tokens.
  void add_rows(int64_t count);
  /// Row r becomes what row parents[r] was: rows may be duplicated, dropped and reordered. No keys are moved.
  void select(std::span<const int32_t> parents);
  /// Row r keeps only its first `length` tokens.
  void truncate(int64_t r, int32_t length) { past.truncate(r, length); }
};

}  // namespace attune

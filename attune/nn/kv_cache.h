#pragma once

#include <cstdint>
#include <vector>

#include "attune/nn/attention.h"

namespace attune {

/// What decoding keeps: for each layer the past of the self-attention and what the cross-attention reads of the source.
/// Rows are hypotheses; several of them may read the same source sentence and share a past.
struct KvCache {
  struct Layer {
    AttentionCache self;
    AttentionCache cross;
  };
  std::vector<Layer> layers;
  Sequences source;      // of the cross-attention's slots
  SlotTable self_table;  // one entry for each row
  SlotTable cross_table;
  std::vector<int32_t> row_of_source;  // the source sentence of each row

  int64_t rows() const { return static_cast<int64_t>(row_of_source.size()); }
  /// Tokens that row r has been given so far.
  int32_t position(int64_t r) const {
    return self_table.end[static_cast<size_t>(r)] - self_table.begin[static_cast<size_t>(r)];
  }
  /// The place that the next token of each row will have, int32 [rows].
  Tensor positions() const;
  int64_t bytes() const;

  /// Row r goes on from what was row parents[r]: rows may be doubled, dropped and reordered; no keys are moved.
  void select(const std::vector<int32_t>& parents);
  /// Row r has one more token, at slot first + r.
  void extend(int64_t first_slot);
};

}  // namespace attune

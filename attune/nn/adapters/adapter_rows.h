#pragma once
// Which adapters the rows of a batch have, where there are several to choose from.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "attune/base/execution.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

/// The number of no adapter.
inline constexpr int32_t kNoAdapter = -1;

/// The adapters of the rows of a batch: each projection's inputs have these rows while execution().adapter_rows points
/// here. Rows with the same adapter are one product.
class AdapterRows {
 public:
  /// Rows [begin, end) of sorted().
  struct Segment {
    int32_t adapter;
    int64_t begin, end;
  };

  /// The adapter of each row, or kNoAdapter.
  explicit AdapterRows(std::vector<int32_t> adapters);

  int64_t rows() const { return static_cast<int64_t>(adapters_.size()); }
  std::span<const int32_t> adapters() const { return adapters_; }
  /// Whether any row has an adapter.
  bool any() const { return !segments_.empty(); }
  /// The rows that have an adapter, in the order of their adapters.
  const Indices& sorted() const { return sorted_; }
  /// The place of each row in sorted(), or -1.
  const Indices& places() const { return places_; }
  std::span<const Segment> segments() const { return segments_; }

 private:
  std::vector<int32_t> adapters_;
  Indices sorted_, places_;
  std::vector<Segment> segments_;
};

/// Sets Execution::adapter_rows while it lives, to null where no row has an adapter.
class AdapterRowsScope {
 public:
  explicit AdapterRowsScope(std::vector<int32_t> adapters)
      : rows_(std::move(adapters)), scope_([this](Execution& e) { e.adapter_rows = rows_.any() ? &rows_ : nullptr; }) {}

 private:
  AdapterRows rows_;
  ExecutionScope scope_;
};

}  // namespace attune

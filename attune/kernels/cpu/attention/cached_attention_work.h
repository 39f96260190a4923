#pragma once
// Divides the rows of a step of decoding into units of work for threads.

#include <cstdint>
#include <vector>

#include "attune/kernels/attention/cached_attention.h"

namespace attune {

constexpr int64_t kCachedAttentionQueries = 64;  // of a piece, at most: their weights lie on the stack

/// Some rows that see the same slots, and one part of the list of these slots.
struct CachedAttentionUnit {
  int64_t row, rows;
  int64_t part, parts;  // the list is read in `parts` parts; this is number `part`
  int64_t first_part;   // where the parts of these rows begin among those of all rows
};

struct CachedAttentionWork {
  std::vector<CachedAttentionUnit> units;
  int64_t parts = 0;     // of all rows that have several; 0: none has
  int64_t products = 0;  // multiplications and additions of all units
};

/// Parts depend on a row's own slots alone, so that no other row and no number of threads changes a result.
CachedAttentionWork cached_attention_work(const CachedAttention& arguments);

/// The positions that a row sees, where a pattern leaves some out.
class VisiblePositions {
 public:
  /// `arguments` have to live as long as this.
  explicit VisiblePositions(const CachedAttention& arguments)
      : arguments_(arguments), all_(std::holds_alternative<FullAttention>(arguments.pattern)) {}

  /// Returns how many positions row r sees. position() and distance() are about this row from then on.
  int64_t of_row(int64_t r);
  /// The j-th position that the row sees, rising with j, and how far it is from the query.
  int32_t position(int64_t j) const { return all_ ? static_cast<int32_t>(j) : positions_[static_cast<size_t>(j)]; }
  int32_t distance(int64_t j) const { return static_cast<int32_t>(length_) - 1 - position(j); }

 private:
  const CachedAttention& arguments_;
  bool all_;
  int64_t row_ = -1, length_ = 0;
  std::vector<int32_t> positions_;
};

}  // namespace attune

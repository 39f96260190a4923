#pragma once
// Divides the attention of one sequence under a pattern into blocks of queries by keys, and skips what is not visible.

#include <array>
#include <cstdint>
#include <functional>

#include "attune/kernels/attention/attention_pattern.h"

namespace attune {

/// The most queries, and the most keys, in a block. The keys of a block are one column group of the dropout mask.
constexpr int64_t kAttentionTile = 64;
/// Column groups of gathered keys have numbers from here on. Those of consecutive keys have smaller ones: 2^31 / 64 at
/// most.
constexpr int64_t kGatheredGroup = int64_t{1} << 26;

struct AttentionSpan {
  int64_t queries, keys;  // of the sequence
  bool causal;

  int64_t position(int64_t query) const { return query + keys - queries; }
};

/// Some queries against some keys, both given by their indices within the sequence in ascending order, not necessarily
/// adjacent. Explicit masks apart, query t sees columns [begin[t], end[t]) without [gap_begin[t], gap_end[t]).
struct AttentionBlock {
  using Indices = std::array<int64_t, kAttentionTile>;
  int64_t rows, columns;  // how many of `queries` and of `keys` are used
  int64_t dropout_group;  // the column group of the dropout mask that begins with column 0
  Indices queries, keys;
  Indices begin, end, gap_begin, gap_end;
};

/// Calls visit with blocks that together contain each pair that pattern and causality allow exactly once. Pairs of a
/// block that they do not allow are outside of its ranges. With a pattern, queries <= keys. The number of blocks
/// follows from what the pattern allows:
///   sliding window, and |i - j| < stride: runs of adjacent keys around runs of adjacent queries;
///   strided: the queries of one residue class modulo stride against the keys of the same class;
///   fixed: the keys of the query's own block, and the gathered summary keys of the other blocks.
void for_each_block(const AttentionPattern& pattern, const AttentionSpan& span,
                    const std::function<void(const AttentionBlock&)>& visit);

/// Returns the column of the dropout mask for a pair that the pattern allows: the key's index, or, for a gathered key,
/// 2^32 plus its index among the gathered keys.
int64_t dropout_column(const AttentionPattern& pattern, int64_t query, int64_t key);

}  // namespace attune

#pragma once
// The work of one sequence under an attention pattern, as blocks of queries by keys that are worth computing.

#include <array>
#include <cstdint>
#include <functional>

#include "attune/kernels/attention_pattern.h"

namespace attune {

/// Most queries, and most keys, of a block. The keys of a block are also one column group of the dropout mask.
constexpr int64_t kAttentionTile = 64;

struct AttentionSpan {
  int64_t queries, keys;  // of the sequence
  bool causal;

  int64_t position(int64_t query) const { return query + keys - queries; }
};

/// Some queries against some keys, both as indices within the sequence and in rising order; they need not be
/// neighbours. Query t sees columns [begin[t], end[t]) without [gap_begin[t], gap_end[t]), explicit masks apart.
struct AttentionBlock {
  using Indices = std::array<int64_t, kAttentionTile>;
  int64_t rows, columns;  // of queries and keys that are set
  int64_t dropout_group;  // column group of the mask that column 0 begins
  Indices queries, keys;
  Indices begin, end, gap_begin, gap_end;
};

/// Calls visit with blocks that together hold each pair that pattern and causality allow, once, and show no other.
/// With a pattern queries <= keys. How many there are follows from what the pattern allows:
///   sliding window, and |i - j| < stride: runs of neighbouring keys around runs of neighbouring queries;
///   strided: the queries of one residue class modulo stride against the keys of the same class;
///   fixed: the own block's keys, and the gathered summary keys of the other blocks.
void for_each_block(const AttentionPattern& pattern, const AttentionSpan& span,
                    const std::function<void(const AttentionBlock&)>& visit);

/// The column of the dropout mask that decides on a pair which the pattern allows: the key, or, for a key that is
/// gathered, 2^32 plus its index among its like.
int64_t dropout_column(const AttentionPattern& pattern, int64_t query, int64_t key);

}  // namespace attune

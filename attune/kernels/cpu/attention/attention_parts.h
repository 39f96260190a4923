#pragma once
// Divides attention over every tile of queries and keys into parts for threads. A task is one sequence and one key head
// with the query heads that share it: task = sequence * key heads + key head.

#include <cstdint>
#include <vector>

#include "attune/kernels/attention/attention.h"

namespace attune {

constexpr int64_t kTilesOfPart = 4;  // of queries or keys, at most: what they need at once stays in the second cache

/// Tiles [begin, end) of a task. With n query heads, tile t belongs to head t % n of the task, and holds its queries
/// from t / n * kAttentionTile on.
struct AttentionForwardPart {
  int64_t task, begin, end;
};
std::vector<AttentionForwardPart> attention_forward_parts(const AttentionInputs& in);

/// Tiles of queries by tiles of keys, for all heads of a task, and which gradients are computed from them.
struct AttentionBackwardPart {
  struct Tiles {
    int64_t begin, end;
  };
  int64_t task;
  Tiles queries, keys;
  bool wants_dq, wants_dk_dv;
};

/// Returns one part for each task. If these would leave too many of the threads without work, returns parts for dk and
/// dv of some keys, and others for dq of some queries. These form the same sums in the same order, but compute the
/// scores twice: seven products in place of five.
std::vector<AttentionBackwardPart> attention_backward_parts(const AttentionInputs& in, int threads);

}  // namespace attune

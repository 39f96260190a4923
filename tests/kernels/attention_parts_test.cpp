#include "attune/kernels/cpu/attention/attention_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "attune/kernels/attention/attention_plan.h"
#include "attune/ops/sequences.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

// Self-attention of sequences of these lengths.
struct Lengths {
  Lengths(const std::vector<int32_t>& lengths, int64_t heads, int64_t kv_heads)
      : offsets(Sequences::from_lengths(lengths).offsets()),
        q(normal({offsets.back(), heads, 2}, {})),
        k(normal({offsets.back(), kv_heads, 2}, {})),
        inputs{.q = {q, 0, heads, 2},
               .k = {k, 0, kv_heads, 2},
               .v = {k, 0, kv_heads, 2},
               .query_offsets = offsets,
               .key_offsets = offsets} {}
  std::vector<int32_t> offsets;
  Tensor q, k;
  AttentionInputs inputs;
};

TEST(AttentionParts, ForwardHasEveryTileOfEveryHeadOnce) {
  const Lengths lengths({700, 1, 0, 64, 65}, 6, 2);
  std::map<std::pair<int64_t, int64_t>, int> seen;
  for (const AttentionForwardPart& part : attention_forward_parts(lengths.inputs)) {
    EXPECT_LE(part.end - part.begin, kTilesOfPart);
    for (int64_t tile = part.begin; tile < part.end; ++tile) ++seen[{part.task, tile}];
  }
  size_t expected = 0;
  for (const int64_t tiles : {11, 1, 0, 1, 2}) expected += static_cast<size_t>(2 * tiles * 3);
  EXPECT_EQ(seen.size(), expected);
  for (const auto& [tile, times] : seen) EXPECT_EQ(times, 1) << tile.first << " " << tile.second;
}

// How often a pair of tiles is computed for dq, and for dk and dv.
void expect_every_gradient_once(const std::vector<AttentionBackwardPart>& parts, int64_t tasks, int64_t tiles) {
  std::map<std::array<int64_t, 3>, std::pair<int, int>> seen;
  for (const AttentionBackwardPart& part : parts) {
    for (int64_t q = part.queries.begin; q < part.queries.end; ++q) {
      for (int64_t k = part.keys.begin; k < part.keys.end; ++k) {
        auto& [dq, dk_dv] = seen[{part.task, q, k}];
        dq += part.wants_dq ? 1 : 0;
        dk_dv += part.wants_dk_dv ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), tasks * tiles * tiles);
  for (const auto& [place, times] : seen) EXPECT_EQ(times, std::pair(1, 1)) << place[0] << " " << place[1];
}

TEST(AttentionParts, BackwardIsSplitWhereThreadsWouldWait) {
  const Lengths one({700}, 8, 1), many(std::vector<int32_t>(20, 700), 8, 1);
  const auto parts = [](const Lengths& lengths, int threads) {
    return attention_backward_parts(lengths.inputs, threads);
  };
  EXPECT_EQ(parts(one, 1).size(), 1);
  EXPECT_EQ(parts(one, 2).size(), 6);  // three runs of tiles of keys, and three of queries
  EXPECT_EQ(parts(many, 8).size(), 20);
  for (const int threads : {1, 2}) expect_every_gradient_once(parts(one, threads), 1, 11);
  expect_every_gradient_once(parts(many, 8), 20, 11);
}

TEST(AttentionParts, ASequenceLongerThanAllOthersTogetherIsSplit) {
  std::vector<int32_t> lengths(30, 10);
  EXPECT_EQ(attention_backward_parts(Lengths(lengths, 1, 1).inputs, 2).size(), 30);
  lengths.push_back(1000);
  EXPECT_GT(attention_backward_parts(Lengths(lengths, 1, 1).inputs, 2).size(), 60);
}

}  // namespace
}  // namespace attune

#include "attune/nn/attention/latent_cost.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

constexpr LatentStep kBase{.heads = 8, .d_head = 64, .d_value = 64, .latent_dim = 128, .rotary_dim = 32};

LatentStep with(LatentStep step, int64_t queries, int64_t slots) {
  step.queries = queries;
  step.slots = slots;
  return step;
}

TEST(LatentCost, CountsEveryProduct) {
  const LatentStep step{
      .heads = 2, .d_head = 3, .d_value = 4, .latent_dim = 5, .rotary_dim = 7, .queries = 11, .slots = 13};
  const int64_t query = 2 * 11 * 2 * 3 * 5, scores = 2 * 11 * 2 * 13 * (5 + 7), sums = 2 * 11 * 2 * 13 * 5,
                out = 2 * 11 * 2 * 4 * 5;
  EXPECT_EQ(absorbed_cost(step).operations, static_cast<double>(query + scores + sums + out));
  EXPECT_EQ(absorbed_cost(step).cached_operations, static_cast<double>(scores + sums));
  const int64_t decompress = 2 * 2 * 13 * 5 * (3 + 4), attention = 2 * 11 * 2 * 13 * (3 + 7 + 4);
  EXPECT_EQ(expanded_cost(step).operations, static_cast<double>(decompress + attention));
}

TEST(LatentCost, StepsAndBeamsAbsorbWhatLongContinuationsExpand) {
  for (const int64_t slots : {1, 2, 10, 100, 4096, 16384}) {
    EXPECT_TRUE(absorbs(with(kBase, 1, slots))) << slots;
  }
  for (const int64_t slots : {10, 100, 4096, 16384}) EXPECT_TRUE(absorbs(with(kBase, 8, slots))) << slots;
  for (const int64_t slots : {512, 4096, 16384}) EXPECT_FALSE(absorbs(with(kBase, 512, slots))) << slots;
}

// Once expanding is cheaper, it stays so for more queries.
TEST(LatentCost, ThereIsOneSwitchPoint) {
  for (const int64_t slots : {64, 1024, 16384}) {
    int64_t changes = 0;
    for (int64_t queries = 2; queries <= 1024; ++queries)
      changes += absorbs(with(kBase, queries, slots)) != absorbs(with(kBase, queries - 1, slots)) ? 1 : 0;
    EXPECT_EQ(changes, 1) << slots;
  }
}

}  // namespace
}  // namespace attune

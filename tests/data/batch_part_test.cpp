#include "attune/data/batch_part.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "attune/base/random.h"

namespace attune {
namespace {

TEST(BatchPart, PartsFollowEachOtherAndAreTheBatch) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> tokens(random.below(12));
    for (int64_t& n : tokens) n = static_cast<int64_t>(random.below(50));
    const auto ranks = static_cast<int64_t>(1 + random.below(9));
    size_t next = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto [begin, end] = examples_of_part(tokens, {rank, ranks});
      if (begin == end) continue;
      EXPECT_EQ(begin, next);
      EXPECT_LT(begin, end);
      next = end;
    }
    EXPECT_EQ(next, tokens.size());
  }
}

TEST(BatchPart, PartsDifferByOneExampleAtMost) {
  std::vector<int64_t> tokens(1000);
  Random random(6);
  for (int64_t& n : tokens) n = static_cast<int64_t>(10 + random.below(50));
  const auto total = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), int64_t{0}));
  for (int64_t rank = 0; rank < 7; ++rank) {
    const auto [begin, end] = examples_of_part(tokens, {rank, 7});
    int64_t sum = 0;
    for (size_t i = begin; i < end; ++i) sum += tokens[i];
    EXPECT_NEAR(static_cast<double>(sum), total / 7, 60);
  }
}

TEST(BatchPart, TwoExamplesGoToTwoOfFourRanks) {
  const std::vector<int64_t> tokens = {5, 5};
  size_t busy = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto [begin, end] = examples_of_part(tokens, {rank, 4});
    EXPECT_LE(end - begin, 1u);
    busy += end - begin;
  }
  EXPECT_EQ(busy, 2u);
}

}  // namespace
}  // namespace attune

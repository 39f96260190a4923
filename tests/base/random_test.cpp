#include "attune/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace attune {
namespace {

// Known answers of the authors' own test (Random123, kat_vectors, philox4x32 with ten rounds).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t{0}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, IsNamedBySeedStreamAndPosition) {
  Random a(1, 2), b(1, 2), c(1, 3);
  std::vector<uint32_t> first;
  for (int i = 0; i < 10; ++i) first.push_back(a.next());
  b.set_position(5);
  EXPECT_EQ(b.next(), first[5]);
  EXPECT_NE(c.next(), first[0]);
}

TEST(Random, Moments) {
  Random random(7);
  double sum = 0, squares = 0, uniform = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    uniform += random.uniform();
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 0.5, 0.01);
}

TEST(Random, BelowIsEven) {
  Random random(3);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts[random.below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(Random, ShuffleIsAPermutation) {
  Random random(1);
  std::vector<int> values(100);
  for (int i = 0; i < 100; ++i) values[static_cast<size_t>(i)] = i;
  auto shuffled = values;
  random.shuffle(shuffled);
  EXPECT_NE(shuffled, values);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, values);
}

}  // namespace
}  // namespace attune

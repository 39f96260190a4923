#include "attune/tensor/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attune/base/random.h"

namespace attune {
namespace {

constexpr size_t kUnit = Arena::kGranule;

struct Block {
  std::byte* data;
  size_t bytes;
  std::byte mark;
};

bool is_marked(const Block& b) {
  return std::all_of(b.data, b.data + b.bytes, [&](std::byte value) { return value == b.mark; });
}

TEST(Arena, BlocksAreTheirOwnersAlone) {
  Arena arena;
  Random random(7);
  std::vector<Block> blocks;
  size_t in_use = 0, most = 0;
  for (int round = 0; round < 3000; ++round) {
    if (blocks.empty() || random.below(100) < (round < 2000 ? 52 : 40)) {
      const size_t bytes = kUnit * (1 + random.below(40));
      auto* const data = static_cast<std::byte*>(arena.take(bytes));
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
      blocks.push_back({data, bytes, static_cast<std::byte>(random.below(256))});
      std::fill_n(data, bytes, blocks.back().mark);
      in_use += bytes;
      most = std::max(most, in_use);
    } else {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      ASSERT_TRUE(is_marked(blocks.back()));
      arena.give_back(blocks.back().data, blocks.back().bytes);
      in_use -= blocks.back().bytes;
      blocks.pop_back();
    }
    ASSERT_LE(in_use, arena.reserved_bytes());
    if (round % 1000 == 999) arena.release();
  }
  for (const Block& b : blocks) EXPECT_TRUE(is_marked(b));
  EXPECT_LT(arena.reserved_bytes(), 2 * most + (size_t{64} << 20));
  for (const Block& b : blocks) arena.give_back(b.data, b.bytes);
  arena.release();
  EXPECT_EQ(arena.reserved_bytes(), 0u);
}

TEST(Arena, WhatSmallBlocksLeaveServesLargeOnes) {
  Arena arena;
  arena.give_back(arena.take(kUnit * 16 * 48), kUnit * 16 * 48);  // in one stretch
  std::vector<void*> blocks;
  for (int i = 0; i < 48; ++i) blocks.push_back(arena.take(kUnit * 16));
  for (const size_t i : {3, 1, 0, 2}) {  // in any order
    for (size_t block = i; block < blocks.size(); block += 4) arena.give_back(blocks[block], kUnit * 16);
  }
  const size_t asked = arena.system_allocations();
  for (int i = 0; i < 4; ++i) EXPECT_NE(arena.take(kUnit * 16 * 12), nullptr);
  EXPECT_EQ(arena.system_allocations(), asked);
}

TEST(Arena, GrowsByWhatIsMissing) {
  Arena arena;
  void* const first = arena.take(kUnit * 1000);
  arena.give_back(first, kUnit * 1000);
  void* const second = arena.take(kUnit * 1500);
  ASSERT_NE(second, nullptr);
  if (second < first) {  // else something lies below the stretch, and there is a second one
    EXPECT_LE(arena.reserved_bytes(), kUnit * 1600);
  }
  arena.give_back(second, kUnit * 1500);
}

TEST(Arena, TooMuchIsRefused) {
  Arena arena;
  EXPECT_EQ(arena.take(SIZE_MAX / kUnit * kUnit), nullptr);
  EXPECT_EQ(arena.take((size_t{1} << 62) / kUnit * kUnit), nullptr);
  EXPECT_EQ(arena.reserved_bytes(), 0u);
  void* const block = arena.take(kUnit);
  ASSERT_NE(block, nullptr);
  arena.give_back(block, kUnit);
}

}  // namespace
}  // namespace attune

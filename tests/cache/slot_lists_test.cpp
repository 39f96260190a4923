#include "attune/cache/slot_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attune/base/random.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

std::vector<int32_t> list_of(const SlotLists& lists, size_t r) {
  const SlotTable t = lists.table();
  return {t.slots.begin() + t.begin[r], t.slots.begin() + t.end[r]};
}

TEST(SlotLists, MoreEntriesThanNumbersAreRefused) {
  SlotLists lists;
  lists.add_rows(64);
  EXPECT_THROW(lists.extend(std::vector<int32_t>(64, 1 << 26)), ShapeError);
  EXPECT_EQ(lists.extend(std::vector<int32_t>(64, 1)).size(), 64u);
}

// Each slot holds the number of the token that was written to it; a row must read back its own tokens, whatever came to
// other rows.
TEST(SlotLists, ARowKeepsItsTokensWhileOthersComeAndGo) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    Random random(seed);
    SlotLists lists;
    std::vector<std::vector<int32_t>> rows;  // the tokens of each row
    std::vector<int32_t> written;            // of each slot
    int32_t token = 0;
    size_t most = 0;
    for (int step = 0; step < 400; ++step) {
      if (rows.empty() || random.below(5) == 0) {
        lists.add_rows(2);
        rows.resize(rows.size() + 2);
      }
      std::vector<int32_t> counts;
      for (size_t r = 0; r < rows.size(); ++r) counts.push_back(static_cast<int32_t>(random.below(4)));
      const auto slots = lists.extend(counts);
      size_t next = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        for (int32_t i = 0; i < counts[r]; ++i) {
          const auto slot = static_cast<size_t>(slots[next++]);
          written.resize(std::max(written.size(), slot + 1), -1);
          written[slot] = token;
          rows[r].push_back(token++);
        }
      }
      EXPECT_EQ(next, slots.size());
      if (!rows.empty() && random.below(3) == 0) {
        const size_t r = random.below(rows.size());
        rows[r].resize(random.below(rows[r].size() + 1));
        lists.truncate(static_cast<int64_t>(r), static_cast<int32_t>(rows[r].size()));
      }
      std::vector<int32_t> parents(random.below(9));
      for (int32_t& p : parents) p = static_cast<int32_t>(random.below(rows.size()));
      lists.select(parents);
      std::vector<std::vector<int32_t>> after;
      for (const int32_t p : parents) after.push_back(rows[static_cast<size_t>(p)]);
      rows = after;

      std::set<int32_t> in_use;
      for (size_t r = 0; r < rows.size(); ++r) {
        const std::vector<int32_t> list = list_of(lists, r);
        ASSERT_EQ(list.size(), rows[r].size());
        for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(written[static_cast<size_t>(list[i])], rows[r][i]);
        in_use.insert(list.begin(), list.end());
      }
      EXPECT_EQ(lists.slots_in_use(), static_cast<int64_t>(in_use.size()));
      most = std::max(most, in_use.size() + 30);
      EXPECT_LE(written.size(), most);
    }
  }
}

TEST(SlotLists, TheSteadyStateNeedsNoMoreMemory) {
  SlotLists lists;
  lists.add_rows(8);
  const std::vector<int32_t> ones(8, 1), parents = {1, 1, 0, 2, 4, 4, 7, 6};
  const auto run = [&] {
    for (int step = 0; step < 50; ++step) {
      lists.extend(ones);
      lists.select(parents);
    }
    for (int64_t r = 0; r < 8; ++r) lists.truncate(r, 0);
  };
  run();
  const size_t size = lists.table().slots.size();
  const int32_t* data = lists.table().slots.data();
  for (int i = 0; i < 20; ++i) run();
  EXPECT_EQ(lists.table().slots.size(), size);
  EXPECT_EQ(lists.table().slots.data(), data);
  EXPECT_EQ(lists.slots_in_use(), 0);
}

TEST(SlotLists, RefusesRowsThatAreNotThere) {
  SlotLists lists;
  lists.add_rows(2);
  EXPECT_EQ(message_of<ShapeError>([&] {
              lists.select(std::vector<int32_t>{0, 2});
            }),
            "cache: row 2, there are 2 rows");
  EXPECT_THROW(lists.extend(std::vector<int32_t>{1}), ShapeError);
  EXPECT_THROW(lists.extend(std::vector<int32_t>{1, -1}), ShapeError);
  EXPECT_EQ(message_of<ShapeError>([&] { lists.truncate(1, 1); }), "cache: row 1 has 0 tokens, cannot keep 1");
}

}  // namespace
}  // namespace attune

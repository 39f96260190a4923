#include "attune/nn/attention/query_groups.h"

#include <gtest/gtest.h>

#include "tests/support/slot_table_data.h"

namespace attune {
namespace {

// Appends queries of one list from slot `begin` on: the first sees `seen` slots, each other one more, or as many.
void add_queries(SlotTableData& table, int32_t begin, int64_t count, int32_t seen, bool causal) {
  for (int64_t i = 0; i < count; ++i) {
    table.begin.push_back(begin);
    table.end.push_back(begin + seen + (causal ? static_cast<int32_t>(i) : 0));
  }
}

SlotTableData table_with(int32_t slots) {
  SlotTableData table;
  for (int32_t i = 0; i < slots; ++i) table.slots.push_back(slots - 1 - i);
  return table;
}

TEST(QueryGroups, AreTheQueriesOfOneList) {
  SlotTableData data = table_with(12);
  add_queries(data, 0, 3, 2, true);
  add_queries(data, 4, 1, 4, true);
  add_queries(data, 8, 2, 3, false);
  const SlotTable table = data;
  const std::vector<QueryGroup> groups = query_groups(table);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[1].begin, 3);
  EXPECT_EQ(groups[2].size(), 2);
  EXPECT_TRUE(is_causal(table, groups[0]));
  EXPECT_FALSE(sees_the_same(table, groups[0]));
  EXPECT_FALSE(is_causal(table, groups[2]));
  EXPECT_TRUE(sees_the_same(table, groups[2]));
  const auto slots = slots_of(table, groups[0]);
  EXPECT_EQ(std::vector<int32_t>(slots.begin(), slots.end()), (std::vector<int32_t>{11, 10, 9, 8}));
  const SlotTable part = queries_of(table, 3, 6);
  EXPECT_EQ(std::vector<int32_t>(part.end.begin(), part.end.end()), (std::vector<int32_t>{8, 11, 11}));
  EXPECT_TRUE(query_groups({}).empty());
}

TEST(QueryGroups, QueriesWithoutSlotsAreNeither) {
  SlotTableData data = table_with(4);
  add_queries(data, 0, 2, 0, true);
  add_queries(data, 2, 2, 0, false);
  const SlotTable table = data;
  for (const QueryGroup& group : query_groups(table)) {
    EXPECT_FALSE(is_causal(table, group));
    EXPECT_FALSE(sees_the_same(table, group));
  }
}

TEST(QueryGroups, PromptsAreCausalAndLongerThanWhatADraftProposes) {
  SlotTableData data = table_with(1000);
  add_queries(data, 0, kQueriesByRow, 3, true);
  add_queries(data, 200, kQueriesByRow + 1, 3, true);
  add_queries(data, 400, kQueriesByRow + 1, 3, false);
  const std::vector<QueryGroup> prompts = prompt_groups(data);
  ASSERT_EQ(prompts.size(), 1u);
  EXPECT_EQ(prompts[0].begin, kQueriesByRow);
  EXPECT_EQ(prompts[0].size(), kQueriesByRow + 1);
}

}  // namespace
}  // namespace attune

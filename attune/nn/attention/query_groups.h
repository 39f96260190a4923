#pragma once
// Queries over a cache that read the same list of slots, and when they are a part of a prompt.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/cache/slot_table.h"

namespace attune {

/// Up to so many new tokens of a sequence read the cache row by row, as a single one does: a draft's proposals are
/// judged by the numbers that steps of one token have. More are a prompt, and read it in tiles.
constexpr int64_t kQueriesByRow = 65;

/// Adjacent queries whose lists begin at the same slot: new tokens of one sequence, or hypotheses of one sentence.
struct QueryGroup {
  int64_t begin, end;  // rows of the queries
  int64_t size() const { return end - begin; }
};

/// All queries of a table, group after group.
std::vector<QueryGroup> query_groups(const SlotTable& table);

/// The part of the table for queries [begin, end).
SlotTable queries_of(const SlotTable& table, int64_t begin, int64_t end);

/// The slots that the last query of a group sees.
std::span<const int32_t> slots_of(const SlotTable& table, const QueryGroup& group);

/// Whether the first query sees a slot, and each sees one more than the one before, as new tokens of a sequence do.
bool is_causal(const SlotTable& table, const QueryGroup& group);
/// Whether all queries see the same slots, at least one.
bool sees_the_same(const SlotTable& table, const QueryGroup& group);

/// The groups that are a part of a prompt: causal, of more than kQueriesByRow queries.
std::vector<QueryGroup> prompt_groups(const SlotTable& table);

}  // namespace attune

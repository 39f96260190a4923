// A part of a prompt over the cache of what is before it, against the whole prompt at once.

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/nn/attention/multi_head_attention.h"
#include "attune/nn/attention/query_groups.h"
#include "tests/nn/attention/cached_attention.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/slot_table_data.h"

namespace attune {
namespace {

constexpr int64_t kPast = 128, kNew = 100, kAll = kPast + kNew, kWidth = 32;  // kPast: whole tiles of queries

MultiHeadAttentionConfig attention_with(const AttentionPositions& positions, double soft_cap = 0) {
  return {.d_model = kWidth, .heads = 4, .kv_heads = 2, .soft_cap = soft_cap, .positions = positions};
}

// The last kNew tokens of a sequence whose slots are reversed_slots(kAll).
SlotTableData new_tokens() {
  SlotTableData table{.slots = reversed_slots(kAll), .begin = {}, .end = {}};
  for (int64_t i = 0; i < kNew; ++i) {
    table.begin.push_back(0);
    table.end.push_back(static_cast<int32_t>(kPast + 1 + i));
  }
  return table;
}

// The states of the new tokens: from the whole prompt at once, and from what is new over the cache.
struct States {
  Tensor at_once, over_cache;
};
States states_of(const MultiHeadAttentionConfig& config, const Device& device) {
  const NoGrad no_grad;
  RandomAttention<MultiHeadAttention> random(config);
  MultiHeadAttention& attention = random.attention;
  const Tensor x = normal({kAll, kWidth}, {.dtype = DType::f32, .seed = 1}).to(device);
  move_parameters(attention, device);
  const Sequences whole = Sequences::from_lengths({static_cast<int32_t>(kAll)});
  AttentionCache cache = attention.make_cache();
  attention.append(x, positions_between(0, kAll), reversed_slots(kAll), cache);
  const SlotTableData data = new_tokens();
  const SlotTable table = data;
  return {
      .at_once = attention(x, x, {.queries = whole, .keys = whole, .causal = true}).rows(kPast, kAll),
      .over_cache =
          attention.attend(x.rows(kPast, kAll), {.positions = positions_between(kPast, kAll), .table = &table}, cache)
              .states};
}

TEST(CachedPrompt, EqualsTheWholePromptWithEveryKindOfPositions) {
  const AttentionPositions kinds[] = {{},
                                      {.pattern = SlidingWindow{.size = 70}},
                                      {.pattern = StridedAttention{.stride = 9}},
                                      {.pattern = FixedAttention{.stride = 16, .summary = 2}},
                                      {.rotary = RotaryOptions{}},
                                      {.alibi = true},
                                      {.relative_clip = 5}};
  for (const AttentionPositions& kind : kinds) {
    for (const double soft_cap : {0.0, 3.0}) {
      if (soft_cap > 0 && kind.alibi) continue;  // which attention refuses
      const States states = states_of(attention_with(kind, soft_cap), Cpu{});
      EXPECT_LT(relative_error(in_f64(states.over_cache), in_f64(states.at_once)), 2e-6);
    }
  }
}

// Where the past is a number of whole tiles, the tiles are those of the whole prompt.
TEST(CachedPrompt, HasTheBitsOfTheWholePrompt) {
  const States states = states_of(attention_with({.rotary = RotaryOptions{}}), Cpu{});
  EXPECT_TRUE(same_bits(states.over_cache, states.at_once));
}

TEST(CachedPrompt, IsTheSameOnEveryDevice) {
  for (const Device& device : devices_under_test()) {
    const States found = states_of(attention_with({.alibi = true}), device);
    const States expected = states_of(attention_with({.alibi = true}), Cpu{});
    EXPECT_LT(relative_error(in_f64(found.over_cache), in_f64(expected.over_cache)), 2e-6);
  }
}

// Between single tokens of other sequences, and with weights, which are formed row by row.
TEST(CachedPrompt, DoesNotDependOnTheBatch) {
  const NoGrad no_grad;
  const RandomAttention<MultiHeadAttention> random(attention_with({}));
  const MultiHeadAttention& attention = random.attention;
  const Tensor x = normal({kAll, kWidth}, {.dtype = DType::f32, .seed = 1});
  AttentionCache cache = attention.make_cache();
  attention.append(x, positions_between(0, kAll), reversed_slots(kAll), cache);
  const SlotTableData single{.slots = {3, 1, 2}, .begin = {0}, .end = {3}};
  const SlotTableData prompt = new_tokens();
  SlotTableData both = prompt;
  for (const int32_t first : {0, 1}) {
    const auto at = static_cast<int32_t>(both.slots.size());
    both.slots.insert(both.slots.end(), single.slots.begin(), single.slots.end());
    both.begin.insert(first == 0 ? both.begin.begin() : both.begin.end(), at);
    both.end.insert(first == 0 ? both.end.begin() : both.end.end(), at + 3);
  }
  const Tensor query = normal({kNew + 2, kWidth}, {.dtype = DType::f32, .seed = 2});
  const SlotTable both_view = both, prompt_view = prompt, single_view = single;
  const auto attend = [&](const Tensor& q, const SlotTable& table, bool with_weights = false) {
    return attention.attend(q, {.positions = {}, .table = &table, .with_weights = with_weights}, cache).states;
  };
  const Tensor together = attend(query, both_view);
  EXPECT_TRUE(same_bits(together.rows(0, 1), attend(query.rows(0, 1), single_view)));
  EXPECT_TRUE(same_bits(together.rows(1, kNew + 1), attend(query.rows(1, kNew + 1), prompt_view)));
  EXPECT_TRUE(same_bits(together.rows(kNew + 1, kNew + 2), attend(query.rows(kNew + 1, kNew + 2), single_view)));
  EXPECT_LT(relative_error(in_f64(attend(query, both_view, true)), in_f64(together)), 2e-6);
}

}  // namespace
}  // namespace attune

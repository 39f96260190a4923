// Latent attention over a cache, in either form, against the expanded form of training.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "attune/autograd/graph.h"
#include "attune/nn/attention/latent_cost.h"
#include "attune/nn/attention/multi_head_latent_attention.h"
#include "attune/nn/attention/query_groups.h"
#include "attune/nn/make_panels.h"
#include "attune/ops/linear/precision.h"
#include "tests/nn/attention/cached_attention.h"
#include "tests/support/gradient_check.h"
#include "tests/support/slot_table_data.h"

namespace attune {
namespace {

// Query i of t sees the slots up to its own position; all of them where `causal` is false.
SlotTableData table_of(int64_t n, int64_t t, bool causal) {
  SlotTableData table{.slots = reversed_slots(n), .begin = {}, .end = {}};
  for (int64_t i = 0; i < t; ++i) {
    table.begin.push_back(0);
    table.end.push_back(static_cast<int32_t>(causal ? n - t + 1 + i : n));
  }
  return table;
}

TEST(LatentAbsorption, CachedEqualsExpanded) {
  rc::check([] {
    const NoGrad no_grad;
    const int64_t heads = *rc::gen::element<int64_t>(1, 2, 6), d_head = *rc::gen::element<int64_t>(4, 10, 16);
    const bool rotary = *rc::gen::arbitrary<bool>(), causal = *rc::gen::arbitrary<bool>();
    MultiHeadLatentAttentionConfig config{.d_model = heads * d_head,
                                          .heads = heads,
                                          .latent_dim = *rc::gen::element<int64_t>(3, 16, 40),
                                          .query_latent_dim = *rc::gen::element<int64_t>(0, 12),
                                          .latent_norm = *rc::gen::arbitrary<bool>(),
                                          .rotary_dim = rotary ? 6 : 0};
    if (rotary) config.positions.rotary = RotaryOptions{};
    const auto n = *rc::gen::inRange<int64_t>(1, 300), t = *rc::gen::inRange<int64_t>(1, n + 1);
    const RandomAttention<MultiHeadLatentAttention> random(config);
    const MultiHeadLatentAttention& attention = random.attention;
    const Tensor x = normal({n, config.d_model}, {.dtype = DType::f32, .seed = 1});
    const Sequences whole = Sequences::from_lengths({static_cast<int32_t>(n)}),
                    last = Sequences::from_lengths({static_cast<int32_t>(t)});
    AttentionCache cache = attention.make_cache();
    attention.append(x, positions_between(0, n), reversed_slots(n), cache);
    const SlotTableData data = table_of(n, t, causal);
    const SlotTable table = data;
    const Tensor found =
        attention.attend(x.rows(n - t, n), {.positions = positions_between(n - t, n), .table = &table}, cache).states;
    const Tensor expected = attention(x, x, {.queries = whole, .keys = whole, .causal = causal}).rows(n - t, n);
    RC_ASSERT(relative_error(in_f64(found), in_f64(expected)) < 2e-5);
  });
}

// Two sequences, of which one goes on by many tokens and one by a single one, in one batch and alone.
TEST(LatentAbsorption, TheFormThatIsChosenDoesNotDependOnTheBatch) {
  const NoGrad no_grad;
  MultiHeadLatentAttentionConfig config{.d_model = 32, .heads = 4, .latent_dim = 24, .rotary_dim = 4};
  config.positions.rotary = RotaryOptions{};
  const int64_t n = 150, t = 100;
  ASSERT_FALSE(absorbs({.heads = 4, .d_head = 8, .latent_dim = 24, .rotary_dim = 4, .queries = t, .slots = n}));
  const RandomAttention<MultiHeadLatentAttention> random(config);
  const MultiHeadLatentAttention& attention = random.attention;
  const Tensor x = normal({n, 32}, {.dtype = DType::f32, .seed = 1});
  AttentionCache cache = attention.make_cache();
  attention.append(x, positions_between(0, n), reversed_slots(n), cache);
  const SlotTableData many = table_of(n, t, true);
  const SlotTableData single{.slots = {3, 1, 2}, .begin = {0}, .end = {3}};
  SlotTableData both = many;
  both.slots.insert(both.slots.end(), single.slots.begin(), single.slots.end());
  both.begin.push_back(static_cast<int32_t>(n));
  both.end.push_back(static_cast<int32_t>(n + 3));
  const Tensor query = normal({t + 1, 32}, {.dtype = DType::f32, .seed = 2});
  const Indices at = positions_between(n - t, n + 1);
  const SlotTable both_view = both, many_view = many, single_view = single;
  const Tensor together = attention.attend(query, {.positions = at, .table = &both_view}, cache).states;
  EXPECT_TRUE(
      same_bits(together.rows(0, t),
                attention.attend(query.rows(0, t), {.positions = at.slice(0, t), .table = &many_view}, cache).states));
  EXPECT_TRUE(same_bits(
      together.rows(t, t + 1),
      attention.attend(query.rows(t, t + 1), {.positions = at.slice(t, t + 1), .table = &single_view}, cache).states));
}

// A draft's proposals are judged by the numbers of single tokens, however cheap the other form is.
TEST(LatentAbsorption, AFewNewTokensAreReadAsOneAtATime) {
  const NoGrad no_grad;
  MultiHeadLatentAttentionConfig config{.d_model = 32, .heads = 4, .latent_dim = 24, .rotary_dim = 4};
  config.positions.rotary = RotaryOptions{};
  const RandomAttention<MultiHeadLatentAttention> random(config);
  const MultiHeadLatentAttention& attention = random.attention;
  for (const int64_t t : {int64_t{10}, kQueriesByRow}) {
    const int64_t n = t + 1;
    ASSERT_FALSE(
        absorbs({.heads = 4, .d_head = 8, .d_value = 8, .latent_dim = 24, .rotary_dim = 4, .queries = t, .slots = n}));
    const Tensor x = normal({n, 32}, {.dtype = DType::f32, .seed = 1});
    AttentionCache cache = attention.make_cache();
    attention.append(x, positions_between(0, n), reversed_slots(n), cache);
    const SlotTableData data = table_of(n, t, true);
    const SlotTable table = data;
    const Indices at = positions_between(n - t, n);
    const Tensor query = x.rows(n - t, n);
    const Tensor together = attention.attend(query, {.positions = at, .table = &table}, cache).states;
    for (int64_t i = 0; i < t; ++i) {
      const SlotTable single = queries_of(table, i, i + 1);
      const CachedQueries one{.positions = at.slice(i, i + 1), .table = &single};
      EXPECT_TRUE(same_bits(together.rows(i, i + 1), attention.attend(query.rows(i, i + 1), one, cache).states))
          << i << " of " << t;
    }
  }
}

// 100 queries that are expanded and one that is absorbed, in one table.
Tensor attend_in_both_forms(const MultiHeadLatentAttention& attention, bool causal, bool bfloat16) {
  const int64_t n = 150, t = 100;
  const Tensor x = normal({n, 32}, {.dtype = DType::f32, .seed = 1});
  AttentionCache cache = attention.make_cache();
  attention.append(x, positions_between(0, n), reversed_slots(n), cache);
  SlotTableData data = table_of(n, t, causal);
  data.slots.insert(data.slots.end(), {3, 1, 2});
  data.begin.push_back(static_cast<int32_t>(n));
  data.end.push_back(static_cast<int32_t>(n + 3));
  const SlotTable table = data;
  const Tensor query = normal({t + 1, 32}, {.dtype = DType::f32, .seed = 2});
  const CachedQueries queries{.positions = positions_between(n - t, n + 1), .table = &table};
  return attention.attend(bfloat16 ? to_bfloat16(query) : query, queries, cache).states;
}

// What a norm gives to products is bfloat16 then. Matrices are read as tensors and as panels.
TEST(LatentAbsorption, BothFormsTakeBfloat16) {
  const NoGrad no_grad;
  for (const bool causal : {true, false})
    for (const bool rotary : {true, false})
      for (const bool panels : {true, false}) {
        MultiHeadLatentAttentionConfig config{
            .d_model = 32, .heads = 4, .latent_dim = 24, .rotary_dim = rotary ? 4 : 0};
        if (rotary) config.positions.rotary = RotaryOptions{};
        RandomAttention<MultiHeadLatentAttention> random(config);
        const Tensor expected = attend_in_both_forms(random.attention, causal, false);
        if (panels) make_panels(random.attention, WeightFormat::bfloat16);
        const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
        const Tensor found = attend_in_both_forms(random.attention, causal, true);
        EXPECT_LT(relative_error(in_f64(found), in_f64(expected)), 0.05);
      }
}

}  // namespace
}  // namespace attune

#include "attune/ops/attention/cached_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attune/ops/attention/attention.h"
#include "tests/ops/attention/cached_attention_data.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

TEST(CachedAttention, EqualsAttentionOverTheSameRows) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    const int64_t heads = 4, d_k = 20, d_v = 12, keys = 700;  // more keys than a page holds
    const Tensor q = normal({3, heads, d_k}, {.seed = 1}), k = normal({keys, kv_heads, d_k}, {.seed = 2}),
                 v = normal({keys, kv_heads, d_v}, {.seed = 3});
    PagedRows k_rows(kv_heads * d_k, DType::f64), v_rows(kv_heads * d_v, DType::f64);
    for (int64_t at = 0; at < keys; at += 100) {  // in pieces that cross the pages
      EXPECT_EQ(k_rows.append(k.rows(at, at + 100).reshape({100, -1})), at);
      v_rows.append(v.rows(at, at + 100).reshape({100, -1}));
    }
    SlotTableData table;
    for (int32_t s = 0; s < keys; ++s) table.slots.push_back(s);
    table.begin = {0, 10, 600};
    table.end = {700, 11, 600};  // everything, one key, none
    const Tensor out = cached_attention(q, k_rows, v_rows, table, {.kv_heads = kv_heads, .scale = 0.3});
    for (int64_t r = 0; r < 3; ++r) {
      const auto [begin, end] = std::pair{table.begin[static_cast<size_t>(r)], table.end[static_cast<size_t>(r)]};
      const Tensor expected = attention(q.rows(r, r + 1), k.rows(begin, end), v.rows(begin, end),
                                        {.query_sequences = Sequences::from_lengths({1}),
                                         .key_sequences = Sequences::from_lengths({end - begin}),
                                         .scale = 0.3});
      EXPECT_LT(relative_error(out.rows(r, r + 1), expected), 1e-12) << r;
    }
  }
}

TEST(CachedAttention, SlotsMayComeInAnyOrderAndBeShared) {
  const Tensor q = normal({2, 1, 4}, {.seed = 1}), k = normal({5, 4}, {.seed = 2});
  PagedRows rows(4, DType::f64);
  rows.append(k);
  const SlotTableData table{.slots = {4, 0, 2, 2, 0, 4}, .begin = {0, 3}, .end = {3, 6}};
  Tensor same = q.clone();
  same.rows(1, 2).copy_from(same.rows(0, 1));
  const Tensor out = cached_attention(same, rows, rows, table, {});
  EXPECT_LT(relative_error(out.rows(1, 2), out.rows(0, 1)), 1e-14);
}

TEST(CachedAttention, RefusesSlotsThatAreNotThere) {
  PagedRows rows(4);
  rows.append(Tensor::zeros({2, 4}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              cached_attention(Tensor::zeros({1, 1, 4}), rows, rows,
                               SlotTableData{.slots = {2}, .begin = {0}, .end = {1}}, {});
            }),
            "cached_attention: slot 2 of 2");
  EXPECT_THROW(rows.append(Tensor::zeros({2, 5})), ShapeError);
}

// The last query of a sequence over all its positions, each asked for; float64.
Tensor plain_row(const Tensor& query, const Tensor& keys, const Tensor& values, const CachedAttentionOptions& options) {
  const Tensor q = query.to(DType::f64), k = keys.to(DType::f64), v = values.to(DType::f64);
  const int64_t n = k.size(0), kv_heads = k.size(1), d_k = k.size(2), d_v = v.size(2), heads = q.size(1);
  Tensor out = Tensor::zeros({1, heads, d_v}, {.dtype = DType::f64});
  const auto as_f64 = [](const Tensor& table) { return table.defined() ? table.to(DType::f64) : table; };
  const Tensor relative_keys = as_f64(options.relative_keys), relative_values = as_f64(options.relative_values);
  const std::vector<double> slopes = options.alibi ? alibi_slopes(heads) : std::vector<double>(kHeads);
  const Tensor bias = as_f64(options.distance_bias);
  const auto at = [&](const Tensor& table, int64_t j, int64_t c) {
    if (!table.defined()) return 0.0;
    const int64_t clip = table.size(0) / 2, row = std::clamp(j - (n - 1), -clip, clip) + clip;
    return table.data<double>()[row * table.size(1) + c];
  };
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t kv_head = h / (heads / kv_heads);
    std::vector<double> weights(static_cast<size_t>(n));
    double total = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (!allows(options.pattern, n - 1, j)) continue;
      double score = 0;
      for (int64_t c = 0; c < d_k; ++c)
        score += q.data<double>()[h * d_k + c] *
                 (k.data<double>()[(j * kv_heads + kv_head) * d_k + c] + at(relative_keys, j, c));
      total += weights[static_cast<size_t>(j)] = std::exp(
          score * options.scale - slopes[static_cast<size_t>(h)] * static_cast<double>(n - 1 - j) + at(bias, j, h));
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t c = 0; c < d_v; ++c)
        out.data<double>()[h * d_v + c] +=
            weights[static_cast<size_t>(j)] / total *
            (v.data<double>()[(j * kv_heads + kv_head) * d_v + c] + at(relative_values, j, c));
    }
  }
  return out;
}

TEST(CachedAttention, EveryOptionEqualsTheFormulaOnEveryTarget) {
  const std::vector<int32_t> lengths{1, 2, 5, 7, 8, 23, 300};
  const auto rows = static_cast<int64_t>(lengths.size());
  for_each_target([&](const char* target) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t kv_heads : {1, 2, 4}) {
        const Cache cache(300, kv_heads, dtype);
        const Tensor q = normal({rows, kHeads, kKeyWidth}, {.dtype = dtype, .seed = 1});
        const std::vector<CachedAttentionOptions> all = every_option(kv_heads, dtype);
        for (size_t i = 0; i < all.size(); ++i) {
          const Tensor out = cached_attention(q, cache.keys, cache.values, prefixes(lengths), all[i]).to(DType::f64);
          for (int64_t r = 0; r < rows; ++r) {
            const int64_t n = lengths[static_cast<size_t>(r)];
            const Tensor expected = plain_row(q.rows(r, r + 1), cache.k.rows(0, n), cache.v.rows(0, n), all[i]);
            EXPECT_LT(relative_error(out.rows(r, r + 1), expected), dtype == DType::f32 ? 3e-6 : 1e-13)
                << target << " option " << i << " kv_heads " << kv_heads << " of " << n << " keys";
          }
        }
      }
    }
  });
}

TEST(CachedAttention, EveryOptionEqualsTheLastQueryOfAttention) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t kv_heads : {1, 4}) {
      const Cache cache(70, kv_heads, dtype);
      const Tensor q = normal({70, kHeads, kKeyWidth}, {.dtype = dtype, .seed = 1});
      for (const CachedAttentionOptions& options : every_option(kv_heads, dtype)) {
        const Sequences whole = Sequences::from_lengths({70});
        const Tensor expected = attention(q, cache.k, cache.v,
                                          {.query_sequences = whole,
                                           .key_sequences = whole,
                                           .causal = true,
                                           .pattern = options.pattern,
                                           .alibi = options.alibi,
                                           .relative_keys = options.relative_keys,
                                           .relative_values = options.relative_values,
                                           .distance_bias = options.distance_bias,
                                           .scale = options.scale});
        for (const int32_t n : {1, 6, 70}) {
          const Tensor out = cached_attention(q.rows(n - 1, n), cache.keys, cache.values, prefixes({n}), options);
          EXPECT_LT(relative_error(out.to(DType::f64), expected.rows(n - 1, n).to(DType::f64)),
                    dtype == DType::f32 ? 3e-6 : 1e-12)
              << options.pattern.index() << " " << n;
        }
      }
    }
  }
}

TEST(CachedAttention, OtherRowsAndThreadsDoNotChangeARow) {
  const Cache cache(40, 2, DType::f32);
  const Tensor q = normal({9, kHeads, kKeyWidth}, {.dtype = DType::f32, .seed = 1});
  const SlotTableData table = prefixes({40, 3, 0, 17, 1, 33, 8, 40, 12});
  for (const CachedAttentionOptions& options : every_option(2, DType::f32)) {
    const auto [one, two] =
        with_one_and_two_threads([&] { return cached_attention(q, cache.keys, cache.values, table, options); });
    EXPECT_TRUE(same_bits(one, two));
    for (int64_t r = 0; r < 9; ++r) {
      const auto i = static_cast<size_t>(r);
      const SlotTableData alone{.slots = {table.slots.begin() + table.begin[i], table.slots.begin() + table.end[i]},
                                .begin = {0},
                                .end = {table.end[i] - table.begin[i]}};
      EXPECT_TRUE(
          same_bits(cached_attention(q.rows(r, r + 1), cache.keys, cache.values, alone, options), one.rows(r, r + 1)));
    }
  }
}

// Lists that are read in several parts, shared by rows and not: a row alone, and threads, give the same bits.
TEST(CachedAttention, LongAndSharedListsGiveTheBitsOfARowAlone) {
  const Cache cache(700, 2, DType::f32);
  const std::vector<int32_t> lengths{700, 700, 700, 129, 128, 128, 0, 0, 257, 1};
  const auto rows = static_cast<int64_t>(lengths.size());
  const Tensor q = normal({rows, kHeads, kKeyWidth}, {.dtype = DType::f32, .seed = 1});
  SlotTableData table = prefixes({700});
  table.begin.clear();
  table.end.clear();
  for (const int32_t length : lengths) {
    table.begin.push_back(0);
    table.end.push_back(length);
  }
  for (CachedAttentionOptions options : every_option(2, DType::f32)) {
    const auto [one, two] =
        with_one_and_two_threads([&] { return cached_attention(q, cache.keys, cache.values, table, options, true); });
    EXPECT_TRUE(same_bits(one.heads, two.heads));
    EXPECT_TRUE(same_bits(one.weights, two.weights));
    for (int64_t r = 0; r < rows; ++r) {
      const int32_t n = lengths[static_cast<size_t>(r)];
      const auto [alone, weights_alone] =
          cached_attention(q.rows(r, r + 1), cache.keys, cache.values, prefixes({n}), options, true);
      EXPECT_TRUE(same_bits(alone, one.heads.rows(r, r + 1))) << options.pattern.index() << " " << n;
      for (int64_t h = 0; h < kHeads && n > 0; ++h) {
        const float* given = one.weights.data<float>() + (r * kHeads + h) * 700;
        EXPECT_EQ(std::vector<float>(given, given + n),
                  std::vector<float>(weights_alone.data<float>() + h * n, weights_alone.data<float>() + (h + 1) * n));
        double sum = 0;
        for (int32_t j = 0; j < n; ++j) sum += static_cast<double>(given[j]);
        EXPECT_NEAR(sum, 1, 1e-5) << options.pattern.index() << " " << n;
      }
    }
  }
}

// More heads than are held at once, in one group and in several.
TEST(CachedAttention, TakesManyHeads) {
  for (const int64_t kv_heads : {1, 2, 5, 130}) {
    const Tensor q = normal({2, 130, kKeyWidth}, {.seed = 1});
    const Cache cache(150, kv_heads, DType::f64);
    SlotTableData table = prefixes({150});
    table.begin.push_back(0);
    table.end.push_back(150);
    const Tensor out = cached_attention(q, cache.keys, cache.values, table, {.kv_heads = kv_heads, .scale = 0.3});
    const Sequences two = Sequences::from_lengths({2}), keys = Sequences::from_lengths({150});
    const Tensor expected =
        attention(q, cache.k, cache.v, {.query_sequences = two, .key_sequences = keys, .scale = 0.3});
    EXPECT_LT(relative_error(out, expected), 1e-12) << kv_heads;
  }
}

TEST(CachedAttention, WhatThePatternLeavesOutIsNotVisited) {
  const Cache cache(60, 1, DType::f64);
  const Tensor q = normal({1, kHeads, kKeyWidth}, {.seed = 1});
  for (const AttentionPattern& pattern : kPatterns) {
    PagedRows keys(kKeyWidth, DType::f64), values(kValueWidth, DType::f64);
    for (int64_t j = 0; j < 60; ++j) {  // what is read and weighed with 0 would still give NaN
      const bool seen = allows(pattern, 59, j);
      keys.append(seen ? cache.k.rows(j, j + 1).reshape({1, -1})
                       : Tensor::full({1, kKeyWidth}, std::nan(""), {.dtype = DType::f64}));
      values.append(seen ? cache.v.rows(j, j + 1).reshape({1, -1})
                         : Tensor::full({1, kValueWidth}, std::nan(""), {.dtype = DType::f64}));
    }
    const CachedAttentionOptions options{.pattern = pattern};
    EXPECT_TRUE(same_bits(cached_attention(q, keys, values, prefixes({60}), options),
                          cached_attention(q, cache.keys, cache.values, prefixes({60}), options)))
        << pattern.index();
  }
}

TEST(CachedAttention, LatentValuesAreTheFirstNumbersOfTheKeys) {
  for (const int64_t kv_heads : {1, 2}) {
    const Cache cache(30, kv_heads, DType::f64);
    const Tensor q = normal({2, kHeads, kKeyWidth}, {.seed = 1});
    PagedRows first(kv_heads * kValueWidth, DType::f64);
    for (int64_t j = 0; j < 30; ++j) {
      const Tensor row = Tensor::empty({1, kv_heads * kValueWidth}, {.dtype = DType::f64});
      for (int64_t c = 0; c < row.numel(); ++c)
        row.data<double>()[c] = cache.k.data<double>()[(j * kv_heads + c / kValueWidth) * kKeyWidth + c % kValueWidth];
      first.append(row);
    }
    const SlotTableData table = prefixes({30, 7});
    EXPECT_TRUE(same_bits(
        cached_attention(q, cache.keys, cache.keys, table, {.kv_heads = kv_heads, .d_v = kValueWidth, .scale = 0.2}),
        cached_attention(q, cache.keys, first, table, {.kv_heads = kv_heads, .scale = 0.2})));
  }
}

TEST(CachedAttention, TakesTheLargestSizesAndNothingAtAll) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const Cache cache(10, 1, DType::f64);
  const Tensor q = normal({2, kHeads, kKeyWidth}, {.seed = 1});
  const Tensor full = cached_attention(q, cache.keys, cache.values, prefixes({10, 4}), {});
  for (const AttentionPattern& pattern :
       {AttentionPattern{SlidingWindow{most}}, AttentionPattern{StridedAttention{most}},
        AttentionPattern{FixedAttention{most, most}}}) {
    EXPECT_TRUE(
        same_bits(cached_attention(q, cache.keys, cache.values, prefixes({10, 4}), {.pattern = pattern}), full));
    const Tensor none = cached_attention(q, cache.keys, cache.values, prefixes({0, 0}), {.pattern = pattern});
    EXPECT_TRUE(same_bits(none, Tensor::zeros_like(none)));
  }
}

TEST(CachedAttention, NamesTheOptionThatDoesNotFit) {
  const Cache cache(10, 1, DType::f32);
  const Tensor q = Tensor::zeros({1, 2, kKeyWidth});
  const auto call = [&](const CachedAttentionOptions& options) {
    cached_attention(q, cache.keys, cache.values, prefixes({3}), options);
  };
  EXPECT_EQ(message_of<ShapeError>([&] { call({.d_v = 13}); }),
            "cached_attention: d_v = 13 but values of 12 in 1 heads have 12");
  EXPECT_EQ(message_of<ShapeError>([&] {
              call({.relative_keys = Tensor::zeros({4, kKeyWidth})});
            }),
            "cached_attention: relative_keys is float32 [4, 20], needs float32 [2 clip + 1, 20]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              call({.relative_values = Tensor::zeros({3, kKeyWidth})});
            }),
            "cached_attention: relative_values is float32 [3, 20], needs float32 [2 clip + 1, 12]");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        call({.relative_keys = Tensor::zeros({3, kKeyWidth}), .relative_values = Tensor::zeros({5, kValueWidth})});
      }),
      "cached_attention: relative_keys [3, 20] and relative_values [5, 12] differ in rows");
  EXPECT_EQ(message_of<ConfigError>([&] { call({.pattern = SlidingWindow{0}}); }),
            "cached_attention: size = 0, needs at least 1");
  EXPECT_THROW(call({.kv_heads = 0}), ShapeError);
  EXPECT_THROW(call({.kv_heads = 3}), ShapeError);
  EXPECT_EQ(
      message_of<ShapeError>([&] { cached_attention(q.to(DType::f64), cache.keys, cache.values, prefixes({3}), {}); }),
      "cached_attention: q is float64, keys float32, values float32");
}

}  // namespace
}  // namespace attune

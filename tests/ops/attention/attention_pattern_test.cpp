#include "attune/kernels/attention/attention_pattern.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <optional>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/kernels/attention/attention_plan.h"
#include "attune/ops/attention/attention.h"
#include "tests/ops/attention/attention_reference.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Positions 0 to n - 1 of query rows and key columns, # = allowed.
std::vector<std::string> picture(const AttentionPattern& pattern, int64_t n) {
  std::vector<std::string> rows;
  for (int64_t i = 0; i < n; ++i) {
    rows.emplace_back();
    for (int64_t j = 0; j < n; ++j) rows.back() += allows(pattern, i, j) ? '#' : '.';
  }
  return rows;
}

TEST(AttentionPattern, AllowsWhatThePapersDraw) {
  EXPECT_EQ(picture(FullAttention{}, 3), (std::vector<std::string>{"###", "###", "###"}));
  EXPECT_EQ(picture(SlidingWindow{.size = 2}, 4), (std::vector<std::string>{"##..", "###.", ".###", "..##"}));
  EXPECT_EQ(picture(StridedAttention{.stride = 2}, 5),
            (std::vector<std::string>{"###.#", "####.", "#####", ".####", "#.###"}));
  EXPECT_EQ(picture(FixedAttention{.stride = 3, .summary = 1}, 7),
            (std::vector<std::string>{"###..#.", "###..#.", "###..#.", "..####.", "..####.", "..####.", "..#..##"}));
}

TEST(AttentionPattern, RefusesSizesThatCannotBe) {
  EXPECT_EQ(message_of<ConfigError>([] { check_pattern("model.pattern", SlidingWindow{.size = 0}); }),
            "model.pattern: size = 0, needs at least 1");
  EXPECT_EQ(message_of<ConfigError>([] { check_pattern("p", StridedAttention{.stride = -1}); }),
            "p: stride = -1, needs at least 1");
  EXPECT_EQ(message_of<ConfigError>([] { check_pattern("p", FixedAttention{.stride = 4, .summary = 5}); }),
            "p: summary = 5, needs at most stride = 4");
  EXPECT_EQ(message_of<ConfigError>([] { check_pattern("p", FixedAttention{.stride = 4, .summary = 0}); }),
            "p: summary = 0, needs at least 1");
  check_pattern("p", FullAttention{});
  check_pattern("p", FixedAttention{.stride = 4, .summary = 4});
}

// Every pair that a plan shows, with its column of the dropout mask; "" or what is wrong with it.
std::string plan_error(const AttentionPattern& pattern, const AttentionSpan& span) {
  std::vector<int64_t> column(static_cast<size_t>(span.queries * span.keys), -1);
  std::string error;
  for_each_block(pattern, span, [&](const AttentionBlock& block) {
    if (block.rows < 1 || block.rows > 64 || block.columns < 1 || block.columns > 64) error = "size of a block";
    for (size_t t = 0; t < static_cast<size_t>(block.rows); ++t) {
      for (int64_t u = block.begin[t]; u < block.end[t]; ++u) {
        if (u >= block.gap_begin[t] && u < block.gap_end[t]) continue;
        const int64_t i = block.queries[t], j = block.keys[static_cast<size_t>(u)];
        if (i < 0 || i >= span.queries || j < 0 || j >= span.keys || u >= block.columns) {
          error = fmt::format("pair {}, {} does not exist", i, j);
          return;
        }
        int64_t& seen = column[static_cast<size_t>(i * span.keys + j)];
        if (seen >= 0) error = fmt::format("pair {}, {} comes twice", i, j);
        seen = block.dropout_group * 64 + u;
      }
    }
  });
  for (int64_t i = 0; i < span.queries; ++i) {
    for (int64_t j = 0; j < span.keys; ++j) {
      const bool allowed = (!span.causal || j <= span.position(i)) && allows(pattern, span.position(i), j);
      const int64_t expected = allowed ? dropout_column(pattern, span.position(i), j) : -1;
      const int64_t found = column[static_cast<size_t>(i * span.keys + j)];
      if (found != expected) error = fmt::format("pair {}, {} has column {}, not {}", i, j, found, expected);
    }
  }
  return error;
}

std::vector<AttentionPattern> patterns() {
  return {FullAttention{},
          SlidingWindow{.size = 1},
          SlidingWindow{.size = 5},
          SlidingWindow{.size = 100},
          StridedAttention{.stride = 1},
          StridedAttention{.stride = 7},
          StridedAttention{.stride = 70},
          FixedAttention{.stride = 1, .summary = 1},
          FixedAttention{.stride = 7, .summary = 3},
          FixedAttention{.stride = 70, .summary = 8},
          FixedAttention{.stride = 16, .summary = 16}};
}

TEST(AttentionPlan, ShowsEachAllowedPairOnce) {
  for (const AttentionPattern& pattern : patterns()) {
    for (const bool causal : {false, true}) {
      for (const AttentionSpan span :
           {AttentionSpan{0, 0, causal}, {1, 1, causal}, {0, 9, causal}, {200, 200, causal}, {70, 210, causal}})
        EXPECT_EQ(plan_error(pattern, span), "")
            << "pattern " << pattern.index() << " causal " << causal << " queries " << span.queries;
    }
  }
}

TEST(AttentionPlan, ShowsEachAllowedPairOnceWhateverTheSizes) {
  rc::check([] {
    const auto positive = [](int64_t most) { return *rc::gen::inRange<int64_t>(1, most + 1); };
    const int64_t keys = positive(300), stride = positive(320);
    const AttentionSpan span{positive(keys), keys, *rc::gen::arbitrary<bool>()};
    const std::vector<AttentionPattern> all{SlidingWindow{stride}, StridedAttention{stride},
                                            FixedAttention{stride, positive(stride)}};
    for (const AttentionPattern& pattern : all) RC_ASSERT(plan_error(pattern, span) == "");
  });
}

TEST(AttentionPlan, SizesBeyondTheSequenceAreFullAttention) {
  const std::vector<AttentionPattern> all{SlidingWindow{kHuge}, StridedAttention{kHuge}, FixedAttention{kHuge, kHuge},
                                          FixedAttention{kHuge, 1}};
  for (const AttentionPattern& pattern : all) {
    EXPECT_EQ(plan_error(pattern, {90, 100, true}), "") << pattern.index();
    EXPECT_EQ(plan_error(pattern, {90, 100, false}), "") << pattern.index();
  }
}

// Entries of the score matrix that are computed, those that are then masked included.
int64_t score_entries(const AttentionPattern& pattern, int64_t n, bool causal) {
  int64_t entries = 0;
  for_each_block(pattern, {n, n, causal}, [&](const AttentionBlock& b) { entries += b.rows * b.columns; });
  return entries;
}

TEST(AttentionPlan, WorkFallsWithThePattern) {
  constexpr int64_t n = 4096;
  for (const bool causal : {false, true}) {
    const int64_t full = score_entries(FullAttention{}, n, causal);
    EXPECT_GE(full, causal ? n * (n + 1) / 2 : n * n);
    const int64_t sides = causal ? 1 : 2;
    EXPECT_LT(score_entries(SlidingWindow{256}, n, causal), n * (sides * 256 + 2 * 64));
    EXPECT_LT(score_entries(StridedAttention{128}, n, causal), n * (sides * 128 + 2 * 64 + n / 128));
    // The own block, and the summaries: half of them, and half a tile, where they are causal.
    EXPECT_LE(score_entries(FixedAttention{128, 8}, n, causal), n * (128 + n / 128 * 8 * sides / 2 + 64));
    for (const AttentionPattern& pattern : patterns()) EXPECT_LE(score_entries(pattern, n, causal), full + full / 8);
  }
  // Linear in the length for a window, and below the square for the others.
  EXPECT_LT(score_entries(SlidingWindow{256}, 4 * n, true), 5 * score_entries(SlidingWindow{256}, n, true));
  EXPECT_LT(score_entries(StridedAttention{256}, 4 * n, true), 10 * score_entries(StridedAttention{128}, n, true));
}

struct Variant {
  std::string name;
  Problem problem;
};

// Every pattern with every other option: causality, groups of heads, ALiBi, tables of relative positions, masks,
// dropout.
std::vector<Variant> variants(const Sizes& sizes, DType dtype) {
  std::vector<Variant> all;
  uint64_t seed = 10;
  for (const AttentionPattern& pattern : patterns()) {
    for (int bits = 0; bits < 32; bits += 3) {  // eleven of the 32 combinations; another eleven for the next pattern
      const int choice = (bits + static_cast<int>(pattern.index())) % 32;
      Sizes s = sizes;
      if ((choice & 1) != 0) s.kv_heads = s.heads / 2;
      Problem p = random_problem(s, dtype, ++seed);
      AttentionOptions& o = p.options;
      o.pattern = pattern;
      o.causal = (choice & 2) != 0;
      o.alibi = (choice & 4) != 0;
      // A table of one row of keys moves all scores of a query alike: nothing to differentiate.
      const int64_t clip = static_cast<int64_t>(seed % 5) + ((choice & 8) != 0 ? 1 : 0), table = 2 * clip + 1;
      if ((choice & 8) != 0) o.relative_keys = normal({table, s.d_k}, {.dtype = dtype, .seed = seed});
      if ((choice & 16) != 0) o.relative_values = normal({table, s.d_v}, {.dtype = dtype, .seed = seed + 1});
      if (seed % 2 == 1)
        o.distance_bias = normal({2 * static_cast<int64_t>(seed % 7) + 3, s.heads}, {.dtype = dtype, .seed = seed + 2});
      if (seed % 4 == 1) o.mask = random_mask(s, true);
      if (seed % 3 == 1) o.dropout = {.probability = 0.3, .seed = seed, .op = 2};
      all.push_back({fmt::format("pattern {} choice {} seed {}", pattern.index(), choice, seed), std::move(p)});
    }
  }
  return all;
}

TEST(AttentionPattern, EveryTargetAgreesWithTheFormula) {
  const Sizes sizes{.queries = {200, 0, 1, 65}, .keys = {200, 0, 1, 90}, .heads = 2, .d_k = 6, .d_v = 9};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f32 ? 4e-6 : 1e-12;
    for (Variant& variant : variants(sizes, dtype)) {
      const Problem& p = variant.problem;
      const Tensor expected = reference(p);
      for_each_target([&](const std::string& target) {
        EXPECT_LT(relative_error(attention(p.q, p.k, p.v, p.options), expected), tolerance)
            << variant.name << " on " << target;
      });
    }
  }
}

TEST(AttentionPattern, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Variant& variant : variants({.queries = {75, 0, 1}, .keys = {75, 0, 3}}, dtype)) {
      std::optional<NoGrad> output_alone;  // a single key weighs 1 whatever its score: q and k have no gradient
      if (variant.problem.options.pattern == AttentionPattern(SlidingWindow{.size = 1})) output_alone.emplace();
      EXPECT_LT(device_error(variant.problem), dtype == DType::f32 ? 1e-5 : 1e-12) << variant.name;
    }
  }
}

TEST(AttentionPattern, WeightsOnRequest) {
  for (Variant& variant : variants({.queries = {30, 1}, .keys = {30, 4}}, DType::f64)) {
    const Problem& p = variant.problem;
    Tensor expected;
    reference(p, &expected);
    const AttentionResult found = attention(head_columns(p.q), head_columns(p.k), head_columns(p.v), p.options, true);
    EXPECT_LT(relative_error(found.weights, expected), 1e-12) << variant.name;
  }
}

// The gradients of q, k, v and of whatever tables there are.
double error_of_gradients(const Problem& p) {
  std::vector<Tensor> inputs{p.q, p.k, p.v};
  const bool keys = p.options.relative_keys.defined(), values = p.options.relative_values.defined();
  if (keys) inputs.push_back(p.options.relative_keys);
  if (values) inputs.push_back(p.options.relative_values);
  const bool bias = p.options.distance_bias.defined();
  if (bias) inputs.push_back(p.options.distance_bias);
  return gradient_error(
      [&](const std::vector<Tensor>& t) {
        AttentionOptions options = p.options;
        if (keys) options.relative_keys = t[3];
        if (values) options.relative_values = t[keys ? 4 : 3];
        if (bias) options.distance_bias = t.back();
        return attention(t[0], t[1], t[2], options);
      },
      inputs);
}

TEST(AttentionPattern, GradientMatchesFiniteDifferences) {
  const Sizes sizes{.queries = {5, 0, 1}, .keys = {9, 0, 1}, .heads = 2, .d_k = 2, .d_v = 1};
  for (const Variant& variant : variants(sizes, DType::f64))
    EXPECT_LT(error_of_gradients(variant.problem), 1e-7) << variant.name;
}

TEST(AttentionPattern, GradientOverSeveralTiles) {
  const std::vector<AttentionPattern> large{FullAttention{},      SlidingWindow{100},  SlidingWindow{5},
                                            StridedAttention{70}, StridedAttention{2}, FixedAttention{70, 3},
                                            FixedAttention{5, 4}};
  for (const AttentionPattern& pattern : large) {
    Problem p =
        random_problem({.queries = {150}, .keys = {150}, .heads = 2, .kv_heads = 1, .d_k = 2, .d_v = 1}, DType::f64);
    p.options.pattern = pattern;
    p.options.causal = pattern.index() != 1;
    p.options.alibi = true;
    p.options.relative_keys = normal({11, 2}, {.seed = 6});
    p.options.relative_values = normal({11, 1}, {.seed = 7});
    p.options.distance_bias = normal({161, 2}, {.seed = 8});
    p.options.dropout = {.probability = 0.2, .seed = 1};
    EXPECT_LT(error_of_gradients(p), 1e-6) << pattern.index();
  }
}

TEST(AttentionPattern, GradientOfTablesOverManySequences) {  // more than the groups that sum them up
  const std::vector<int32_t> lengths(70, 2);
  Problem p = random_problem({.queries = lengths, .keys = lengths, .heads = 2, .d_k = 1, .d_v = 1}, DType::f64);
  EXPECT_LT(gradient_error(
                [&](const std::vector<Tensor>& t) {
                  p.options.relative_keys = t[0];
                  p.options.relative_values = t[1];
                  p.options.distance_bias = t[2];
                  return attention(p.q, p.k, p.v, p.options);
                },
                {normal({3, 1}, {.seed = 6}), normal({3, 1}, {.seed = 7}), normal({3, 2}, {.seed = 8})}),
            1e-7);
}

// A window as wide as the sequence takes the path of the patterns; no pattern at all takes the other one.
TEST(AttentionPattern, BothPathsAgree) {
  for (const bool causal : {false, true}) {
    Problem p = random_problem({.queries = {150, 3}, .keys = {150, 3}, .heads = 4}, DType::f32);
    p.options.causal = causal;
    p.options.dropout = {.probability = 0.3, .seed = 4};
    auto run = [&](const AttentionPattern& pattern) {
      p.options.pattern = pattern;
      for (Tensor* t : {&p.q, &p.k, &p.v}) require_gradient(*t);
      const Tensor out = attention(p.q, p.k, p.v, p.options);
      backward(out, normal(out.shape(), {.dtype = DType::f32, .seed = 3}));
      return std::vector<Tensor>{out.detach(), gradient(p.q), gradient(p.k), gradient(p.v)};
    };
    const auto plain = run(FullAttention{}), window = run(SlidingWindow{.size = 150});
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_LT(relative_error(window[i], plain[i]), 2e-6) << i;
  }
}

TEST(AttentionPattern, FullyMaskedQueriesGiveZerosAndNoGradient) {
  for (const AttentionPattern& pattern : patterns()) {
    Problem p = random_problem({.queries = {70}, .keys = {70}, .heads = 1, .kv_heads = 1}, DType::f64);
    p.options.pattern = pattern;
    p.options.alibi = true;
    p.options.relative_keys = normal({5, 5}, {.seed = 6});
    p.options.relative_values = normal({5, 3}, {.seed = 7});
    p.options.mask = Tensor::full({1, 70, 70}, 1, {.dtype = DType::u8});
    for (int64_t j = 0; j < 70; ++j) p.options.mask.data<uint8_t>()[66 * 70 + j] = 0;
    for (Tensor* t : {&p.q, &p.k, &p.v, &p.options.relative_keys, &p.options.relative_values}) require_gradient(*t);
    const Tensor out = attention(p.q, p.k, p.v, p.options);
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(out.data<double>()[66 * 3 + c], 0.0);
    backward(out);
    for (const Tensor& t : {p.q, p.k, p.v, p.options.relative_keys, p.options.relative_values})
      EXPECT_EQ(first_not_finite(gradient(t)), -1);
    for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(gradient(p.q).data<double>()[66 * 5 + c], 0.0);
  }
}

TEST(AttentionPattern, BadNumbersStayVisible) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const AttentionPattern& pattern : patterns()) {
      Problem p = random_problem({.queries = {90}, .keys = {90}, .d_k = 4}, DType::f32);
      p.options.pattern = pattern;
      for (float& x : p.q.values<float>()) x = std::abs(x);  // a score of -infinity would be a key that is not seen
      p.k.values<float>()[3] = bad;
      p.options.alibi = true;
      EXPECT_GE(first_not_finite(attention(p.q, p.k, p.v, p.options)), 0) << bad << " with pattern " << pattern.index();
    }
  }
}

// Output and gradients, those of the tables included, of heads that share keys.
std::vector<Tensor> with_table_gradients(const AttentionPattern& pattern, int threads) {
  const ThreadScope scope(threads);
  Problem p = random_problem(
      {.queries = {20, 150, 5}, .keys = {20, 150, 5}, .heads = 4, .kv_heads = 1, .d_k = 16, .d_v = 16}, DType::f32);
  p.options.pattern = pattern;
  p.options.dropout = {.probability = 0.1, .seed = 8};
  p.options.relative_keys = normal({17, 16}, {.dtype = DType::f32, .seed = 6});
  p.options.relative_values = normal({17, 16}, {.dtype = DType::f32, .seed = 7});
  p.options.distance_bias = normal({41, 4}, {.dtype = DType::f32, .seed = 8});
  std::vector<Tensor*> inputs{
      &p.q, &p.k, &p.v, &p.options.relative_keys, &p.options.relative_values, &p.options.distance_bias};
  for (Tensor* t : inputs) require_gradient(*t);
  const Tensor out = attention(p.q, p.k, p.v, p.options);
  backward(out);
  std::vector<Tensor> results{out.detach()};
  for (const Tensor* t : inputs) results.push_back(gradient(*t));
  return results;
}

TEST(AttentionPattern, SameBitsForEveryThreadCount) {
  for (const AttentionPattern& pattern : patterns()) {
    const auto one = with_table_gradients(pattern, 1);
    for (const int threads : {2, 3, 8}) {
      const auto several = with_table_gradients(pattern, threads);
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(same_bits(one[i], several[i])) << i << " " << pattern.index() << ", threads " << threads;
    }
  }
}

TEST(AttentionPattern, MemoryIsLinearInLength) {
  auto peak = [](int32_t length, const AttentionPattern& pattern) {
    Problem p = random_problem({.queries = {length}, .keys = {length}, .heads = 1, .kv_heads = 1, .d_k = 8, .d_v = 8},
                               DType::f32);
    p.options.pattern = pattern;
    require_gradient(p.q);
    reset_peak_bytes();
    const int64_t before = allocator_statistics().bytes_in_use;
    backward(attention(p.q, p.k, p.v, p.options));
    return allocator_statistics().peak_bytes_in_use - before;
  };
  for (const AttentionPattern& pattern : patterns())
    EXPECT_LT(peak(4096, pattern), 4096 * 4096 * 4 / 20) << pattern.index();
}

TEST(AttentionPattern, ErrorsNameWhatDoesNotFit) {
  Problem p = random_problem({.queries = {3}, .keys = {2}}, DType::f32);
  const auto message = [&] { return message_of<ShapeError>([&] { attention(p.q, p.k, p.v, p.options); }); };
  p.options.pattern = SlidingWindow{};
  EXPECT_EQ(message(), "attention: sequence 0 has 3 queries but 2 keys; a pattern is for self-attention");
  p.options.pattern = SlidingWindow{.size = 0};
  EXPECT_EQ(message_of<ConfigError>([&] { attention(p.q, p.k, p.v, p.options); }),
            "attention: size = 0, needs at least 1");
  p.options.pattern = FullAttention{};
  p.options.relative_keys = normal({4, 5}, {.dtype = DType::f32});
  EXPECT_EQ(message(), "attention: relative_keys is float32 [4, 5], needs float32 [2 clip + 1, 5]");
  p.options.relative_keys = normal({5, 5}, {.dtype = DType::f32});
  p.options.relative_values = normal({5, 4}, {.dtype = DType::f32});
  EXPECT_EQ(message(), "attention: relative_values is float32 [5, 4], needs float32 [2 clip + 1, 3]");
  p.options.relative_values = normal({7, 3}, {.dtype = DType::f32});
  EXPECT_EQ(message(), "attention: relative_keys [5, 5] and relative_values [7, 3] differ in rows");
  p.options.relative_values = {};
  p.options.distance_bias = normal({5, 3}, {.dtype = DType::f32});
  EXPECT_EQ(message(), "attention: distance_bias is float32 [5, 3], needs float32 [2 reach + 1, 2]");
}

TEST(Alibi, SlopesOfPressEtAl) {
  EXPECT_EQ(alibi_slopes(8), (std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 1 / 64.0, 1 / 128.0, 1 / 256.0}));
  EXPECT_EQ(alibi_slopes(1), (std::vector<double>{1 / 256.0}));
  const std::vector<double> six = alibi_slopes(6);  // those of four heads, then the first and third of eight
  EXPECT_EQ(six, (std::vector<double>{0.25, 0.0625, 1 / 64.0, 1 / 256.0, 0.5, 0.125}));
  EXPECT_EQ(message_of<ConfigError>([] { alibi_slopes(0); }), "alibi_slopes: heads = 0, needs at least 1");
}

}  // namespace
}  // namespace attune

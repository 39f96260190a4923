#include "attune/ops/attention/attention.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/ops/linear/precision.h"
#include "tests/ops/attention/attention_reference.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

std::vector<std::pair<const char*, Problem>> problems(DType dtype) {
  std::vector<std::pair<const char*, Problem>> all;
  const Sizes small{.queries = {3, 1, 4}, .keys = {5, 2, 4}};
  const Sizes self{.queries = {6, 3, 1}, .keys = {6, 3, 1}, .heads = 4, .kv_heads = 2, .d_k = 4, .d_v = 6};
  all.emplace_back("cross", random_problem(small, dtype));
  all.emplace_back("grouped", random_problem(self, dtype));
  all.emplace_back("causal", random_problem(self, dtype));
  all.back().second.options.causal = true;
  all.emplace_back("masked", random_problem(small, dtype));
  all.back().second.options.mask = random_mask(small, true);
  all.emplace_back("dropout", random_problem(self, dtype));
  all.back().second.options.dropout = {.probability = 0.3, .seed = 5, .step = 2, .op = 1};
  all.back().second.options.causal = true;
  all.emplace_back("scaled", random_problem(small, dtype));
  all.back().second.options.scale = 0.37;
  return all;
}

// Heads that are longer than a tile, with and without tables of relative positions.
std::vector<std::pair<const char*, Problem>> wide_problems(DType dtype) {
  const Sizes sizes{.queries = {5, 70}, .keys = {5, 70}, .heads = 2, .kv_heads = 1, .d_k = 70, .d_v = 131};
  std::vector<std::pair<const char*, Problem>> all;
  all.emplace_back("wide", random_problem(sizes, dtype));
  all.back().second.options.causal = true;
  all.emplace_back("wide, with tables", random_problem(sizes, dtype));
  all.back().second.options.relative_keys = normal({9, 70}, {.dtype = dtype, .seed = 6});
  all.back().second.options.relative_values = normal({9, 131}, {.dtype = dtype, .seed = 7});
  return all;
}

TEST(Attention, GradientMatchesFiniteDifferences) {
  for (auto& [name, p] : problems(DType::f64)) {
    EXPECT_LT(gradient_error([&, options = p.options](
                                 const std::vector<Tensor>& t) { return attention(t[0], t[1], t[2], options); },
                             {p.q, p.k, p.v}),
              1e-7)
        << name;
  }
}

TEST(Attention, GradientOverSeveralTiles) {  // more keys and queries than a tile holds
  Problem p =
      random_problem({.queries = {70}, .keys = {130}, .heads = 1, .kv_heads = 1, .d_k = 2, .d_v = 1}, DType::f64);
  for (const bool causal : {false, true}) {
    p.options.causal = causal;
    p.options.dropout = {.probability = causal ? 0.2 : 0.0, .seed = 1};
    EXPECT_LT(gradient_error([&](const std::vector<Tensor>& t) { return attention(t[0], t[1], t[2], p.options); },
                             {p.q, p.k, p.v}),
              1e-6);
  }
}

TEST(Attention, EveryTargetAgreesWithTheFormula) {
  const Sizes large{.queries = {65, 7, 140}, .keys = {65, 20, 140}, .heads = 4, .kv_heads = 2, .d_k = 32, .d_v = 20};
  auto all = problems(DType::f32);
  all.emplace_back("large", random_problem(large, DType::f32));
  all.emplace_back("large causal", random_problem(large, DType::f32));
  all.back().second.options.causal = true;
  all.back().second.options.dropout = {.probability = 0.1, .seed = 3};
  for_each_target([&](const std::string& target) {
    for (auto& [name, p] : all)
      EXPECT_LT(relative_error(attention(p.q, p.k, p.v, p.options).to(DType::f64), reference(p)), 2e-6)
          << name << " on " << target;
  });
}

TEST(Attention, WeightsOnRequest) {
  for (auto& [name, p] : problems(DType::f64)) {
    Tensor expected;
    reference(p, &expected);
    const AttentionResult found = attention(head_columns(p.q), head_columns(p.k), head_columns(p.v), p.options, true);
    EXPECT_LT(relative_error(found.weights, expected), 1e-12) << name;
    EXPECT_TRUE(same_bits(found.heads, attention(p.q, p.k, p.v, p.options))) << name;
  }
}

TEST(Attention, FullyMaskedQueriesGiveZerosAndNoGradient) {
  Problem p = random_problem({.queries = {3}, .keys = {4}}, DType::f64);
  p.options.mask = Tensor::full({1, 3, 4}, 1, {.dtype = DType::u8});
  for (int64_t j = 0; j < 4; ++j) p.options.mask.data<uint8_t>()[4 + j] = 0;
  for (Tensor* t : {&p.q, &p.k, &p.v}) require_gradient(*t);
  const Tensor out = attention(p.q, p.k, p.v, p.options);
  for (int64_t i = 6; i < 12; ++i) EXPECT_EQ(out.data<double>()[i], 0.0);
  backward(out);
  for (const Tensor& t : {p.q, p.k, p.v}) EXPECT_EQ(first_not_finite(gradient(t)), -1);
  for (int64_t i = 10; i < 20; ++i) EXPECT_EQ(gradient(p.q).data<double>()[i], 0.0);
}

TEST(Attention, EmptySequences) {
  const Problem p = random_problem({.queries = {2, 0, 3}, .keys = {0, 4, 3}}, DType::f32);
  const Tensor out = attention(p.q, p.k, p.v, p.options);
  EXPECT_LT(relative_error(out.to(DType::f64), reference(p)), 2e-6);
  EXPECT_EQ(out.data<float>()[0], 0.0f);  // two queries without a key
}

TEST(Attention, SurvivesLargeScores) {
  Problem p = random_problem({.queries = {80}, .keys = {80}, .d_k = 4}, DType::f32);
  for (float& x : p.q.values<float>()) x *= 1e4f;
  for (Tensor* t : {&p.q, &p.k, &p.v}) require_gradient(*t);
  const Tensor out = attention(p.q, p.k, p.v, p.options);
  backward(out);
  EXPECT_EQ(first_not_finite(out), -1);
  for (const Tensor& t : {p.q, p.k, p.v}) EXPECT_EQ(first_not_finite(gradient(t)), -1);
}

TEST(Attention, BadNumbersStayVisible) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool in_keys : {false, true}) {
      Problem p = random_problem({.queries = {70}, .keys = {70}, .d_k = 4}, DType::f32);
      (in_keys ? p.k : p.q).values<float>()[3] = bad;
      EXPECT_GE(first_not_finite(attention(p.q, p.k, p.v, p.options)), 0) << bad << " in " << (in_keys ? "k" : "q");
    }
  }
}

// More queries and keys than a part has, with heads that share keys and with few of them beside many threads.
std::vector<std::pair<const char*, Problem>> long_problems(DType dtype) {
  std::vector<std::pair<const char*, Problem>> all;
  const Sizes multi_query{.queries = {700}, .keys = {700}, .heads = 4, .kv_heads = 1, .d_k = 16, .d_v = 24};
  all.emplace_back("multi-query", random_problem(multi_query, dtype));
  all.emplace_back("multi-query, causal", random_problem(multi_query, dtype));
  all.back().second.options.causal = true;
  all.back().second.options.dropout = {.probability = 0.1, .seed = 8};
  all.emplace_back("masked", random_problem(multi_query, dtype));
  all.back().second.options.mask = random_mask(multi_query, true);
  all.emplace_back("fewer queries than keys",
                   random_problem({.queries = {300, 3}, .keys = {640, 1}, .heads = 2, .kv_heads = 2}, dtype));
  all.back().second.options.causal = true;
  all.emplace_back("more queries than keys",
                   random_problem({.queries = {400}, .keys = {130}, .heads = 1, .kv_heads = 1}, dtype));
  all.back().second.options.causal = true;
  all.emplace_back("many sequences", random_problem({.queries = std::vector<int32_t>(40, 20),
                                                     .keys = std::vector<int32_t>(40, 20),
                                                     .heads = 6,
                                                     .kv_heads = 2,
                                                     .d_k = 16,
                                                     .d_v = 16},
                                                    dtype));
  return all;
}

TEST(Attention, LongSequencesOnEveryTarget) {
  for (auto& [name, p] : long_problems(DType::f32)) {
    const Tensor expected = reference(p);
    for_each_target([&, &name = name, &p = p](const std::string& target) {
      EXPECT_LT(relative_error(attention(p.q, p.k, p.v, p.options).to(DType::f64), expected), 2e-6)
          << name << " on " << target;
    });
  }
}

std::vector<Tensor> output_and_gradients(const Problem& p) {
  return outputs_and_gradients([&](const std::vector<Tensor>& t) { return attention(t[0], t[1], t[2], p.options); },
                               {p.q, p.k, p.v}, Cpu{});
}

TEST(Attention, SameBitsForEveryThreadCount) {
  auto all = long_problems(DType::f32);
  all.emplace_back("short",
                   random_problem({.queries = {20, 70, 5}, .keys = {20, 70, 5}, .d_k = 16, .d_v = 16}, DType::f32));
  for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const ProductPrecisionScope scope(precision);
    for (const auto& [name, p] : all) {
      const auto run = [&, &p = p](int n) {
        const ThreadScope threads(n);
        return output_and_gradients(p);
      };
      const auto one = run(1);
      for (const int threads : {2, 3, 8}) {
        const auto several = run(threads);
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(same_bits(one[i], several[i])) << name << ", result " << i << ", threads " << threads;
      }
    }
  }
}

// The weights of a head, and so its gradients, do not depend on which heads it shares keys with.
TEST(Attention, SharedKeysGiveWhatCopiesOfThemGive) {
  for (auto& [name, p] : long_problems(DType::f64)) {
    const int64_t heads = p.q.size(1), group = heads / p.k.size(1);
    const auto copied = [&, heads = heads](const Tensor& x) {
      const Tensor copies = Tensor::empty({x.size(0), heads, x.size(2)}, {.dtype = DType::f64});
      for (int64_t row = 0; row < x.size(0); ++row) {
        for (int64_t h = 0; h < heads; ++h)
          std::copy_n(x.data<double>() + (row * x.size(1) + h / group) * x.size(2), x.size(2),
                      copies.data<double>() + (row * heads + h) * x.size(2));
      }
      return copies;
    };
    const auto summed = [&, heads = heads](const Tensor& x) {
      const Tensor sums = Tensor::zeros({x.size(0), heads / group, x.size(2)}, {.dtype = DType::f64});
      for (int64_t row = 0; row < x.size(0); ++row) {
        for (int64_t h = 0; h < heads; ++h) {
          for (int64_t c = 0; c < x.size(2); ++c)
            sums.data<double>()[(row * (heads / group) + h / group) * x.size(2) + c] +=
                x.data<double>()[(row * heads + h) * x.size(2) + c];
        }
      }
      return sums;
    };
    Problem alone = p;
    alone.k = copied(p.k);
    alone.v = copied(p.v);
    const auto found = output_and_gradients(p), expected = output_and_gradients(alone);
    EXPECT_TRUE(same_bits(found[0], expected[0])) << name;
    EXPECT_TRUE(same_bits(found[1], expected[1])) << name;
    EXPECT_LT(relative_error(found[2], summed(expected[2])), 1e-12) << name;
    EXPECT_LT(relative_error(found[3], summed(expected[3])), 1e-12) << name;
  }
}

TEST(Attention, MemoryIsLinearInLength) {
  const NoGrad no_grad;
  auto peak = [](int32_t length) {
    const Problem p = random_problem(
        {.queries = {length}, .keys = {length}, .heads = 1, .kv_heads = 1, .d_k = 8, .d_v = 8}, DType::f32);
    reset_peak_bytes();
    const int64_t before = allocator_statistics().bytes_in_use;
    attention(p.q, p.k, p.v, p.options);
    return allocator_statistics().peak_bytes_in_use - before;
  };
  EXPECT_LT(peak(4096), 5 * peak(1024));        // a matrix of scores would make it 16 times
  EXPECT_LT(peak(4096), 4096 * 4096 * 4 / 20);  // and far larger than this
}

TEST(Attention, PermutingKeysChangesNothing) {
  rc::check([](uint64_t seed) {
    const auto n = *rc::gen::inRange(1, 90);
    Problem p = random_problem({.queries = {4}, .keys = {n}, .d_k = 8, .d_v = 8}, DType::f64, seed % 1000);
    const Tensor out = attention(p.q, p.k, p.v, p.options);
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = n - 1 - i;
    Problem turned = p;
    turned.k = Tensor::empty_like(p.k);
    turned.v = Tensor::empty_like(p.v);
    for (int64_t i = 0; i < n; ++i) {
      turned.k.rows(i, i + 1).copy_from(p.k.rows(n - 1 - i, n - i));
      turned.v.rows(i, i + 1).copy_from(p.v.rows(n - 1 - i, n - i));
    }
    RC_ASSERT(relative_error(attention(turned.q, turned.k, turned.v, turned.options), out) < 1e-12);
  });
}

TEST(Attention, ErrorsNameTheShapes) {
  Problem p = random_problem({.queries = {3}, .keys = {4}}, DType::f32);
  const Tensor wide = normal({4, 2, 6}, {.dtype = DType::f32});
  EXPECT_EQ(message_of<ShapeError>([&] { attention(p.q, wide, p.v, p.options); }),
            "attention: q [3, 2, 5] has d_k = 5 but k [4, 2, 6] has 6");
  p.options.key_sequences = Sequences::from_lengths({5});
  EXPECT_EQ(message_of<ShapeError>([&] { attention(p.q, p.k, p.v, p.options); }),
            "attention: sequences hold 5 rows but k has 4");
}

// q, k and v within the rows of one tensor, as one product leaves them, of two, and with columns that nobody reads.
TEST(Attention, HeadsWithinLongerRows) {
  const std::vector<int32_t> lengths = {6, 1, 70};
  AttentionOptions options{.query_sequences = Sequences::from_lengths(lengths),
                           .key_sequences = Sequences::from_lengths(lengths),
                           .causal = true,
                           .dropout = {.probability = 0.2, .seed = 4}};
  const int64_t rows = 77, d = 4;
  for (const bool pattern : {false, true}) {
    if (pattern) options.pattern = SlidingWindow{.size = 5};
    for (const int64_t spare : {0, 3}) {
      const Tensor x = normal({rows, spare + 8 * d}, {.seed = 1});
      const auto part = [&](int64_t first, int64_t heads) {  // copied out
        Tensor y = Tensor::empty({rows, heads, d}, {.dtype = DType::f64});
        for (int64_t r = 0; r < rows; ++r)
          std::copy_n(x.data<double>() + r * x.size(1) + spare + first * d, heads * d,
                      y.data<double>() + r * heads * d);
        return y;
      };
      const auto packed = [&](const Tensor& t) {
        return attention({.x = t, .column = spare, .heads = 4, .d = d},
                         {.x = t, .column = spare + 4 * d, .heads = 2, .d = d},
                         {.x = t, .column = spare + 6 * d, .heads = 2, .d = d}, options);
      };
      EXPECT_TRUE(same_bits(packed(x), attention(part(0, 4), part(4, 2), part(6, 2), options)));
      const AttentionResult within = attention({.x = x, .column = spare, .heads = 4, .d = d},
                                               {.x = x, .column = spare + 4 * d, .heads = 2, .d = d},
                                               {.x = x, .column = spare + 6 * d, .heads = 2, .d = d}, options, true);
      const AttentionResult apart =
          attention(head_columns(part(0, 4)), head_columns(part(4, 2)), head_columns(part(6, 2)), options, true);
      EXPECT_TRUE(same_bits(within.weights, apart.weights));
      Tensor leaf = x.detach();
      std::vector<Tensor> parts{part(0, 4), part(4, 2), part(6, 2)};
      require_gradient(leaf);
      for (Tensor& t : parts) require_gradient(t);
      const Tensor dy = normal({rows, 4, d}, {.seed = 2});
      backward(packed(leaf), dy);
      backward(attention(parts[0], parts[1], parts[2], options), dy);
      for (int64_t r = 0; r < rows; ++r) {
        const double* found = gradient(leaf).data<double>() + r * x.size(1);
        for (int64_t c = 0; c < spare; ++c) ASSERT_EQ(found[c], 0);
        int64_t column = spare;
        for (const Tensor& t : parts)
          for (int64_t c = 0; c < t.size(1) * d; ++c)
            ASSERT_EQ(found[column++], gradient(t).data<double>()[r * t.size(1) * d + c]) << r << " " << column;
      }
    }
  }
}

TEST(Attention, HeadsThatOverlapHaveAGradientEach) {
  const AttentionOptions options{.query_sequences = Sequences::from_lengths({5}),
                                 .key_sequences = Sequences::from_lengths({5})};
  const auto same_keys_and_values = [&](const Tensor& x) {
    const HeadColumns all{.x = x, .heads = 2, .d = 3};
    return attention({.x = x, .column = 6, .heads = 2, .d = 3}, all, all, options);
  };
  EXPECT_LT(gradient_error(same_keys_and_values, normal({5, 12}, {.seed = 1})), 1e-7);
  EXPECT_EQ(message_of<ShapeError>([&] {
              const Tensor x = Tensor::zeros({5, 12});
              attention({.x = x, .column = 7, .heads = 2, .d = 3}, head_columns(Tensor::zeros({5, 2, 3})),
                        head_columns(Tensor::zeros({5, 2, 3})), options);
            }),
            "attention: 2 heads of 3 from column 7 on do not lie in q [5, 12]");
}

TEST(Attention, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    auto all = problems(dtype);
    all.emplace_back("empty", random_problem({.queries = {2, 0, 3}, .keys = {0, 4, 3}}, dtype));
    all.emplace_back("more queries than keys", random_problem({.queries = {5, 2}, .keys = {3, 2}}, dtype));
    all.back().second.options.causal = true;
    all.emplace_back("tiles", random_problem({.queries = {130}, .keys = {140}, .heads = 1, .kv_heads = 1}, dtype));
    all.back().second.options.causal = true;
    all.back().second.options.dropout = {.probability = 0.3, .seed = 5};
    all.emplace_back("soft cap", random_problem({.queries = {7, 70}, .keys = {7, 70}}, dtype));
    all.back().second.options.causal = true;
    all.back().second.options.soft_cap = 1.5;
    for (auto& wide : wide_problems(dtype)) all.push_back(std::move(wide));
    for (const auto& [name, p] : all) EXPECT_LT(device_error(p), dtype == DType::f32 ? 1e-5 : 1e-12) << name;
  }
}

// Devices that multiply bfloat16 numbers round q, k, v, the weights and their gradients.
TEST(Attention, BFloat16ProductsAreNearOnEveryDevice) {
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  auto all = problems(DType::f32);
  for (auto& wide : wide_problems(DType::f32)) all.push_back(std::move(wide));
  all.emplace_back("tiles", random_problem({.queries = {70, 130}, .keys = {70, 140}, .d_k = 16, .d_v = 8}, DType::f32));
  all.back().second.options.dropout = {.probability = 0.3, .seed = 5};
  for (const int64_t d_v : {64, 132})  // one thread of a GPU for each four columns, and more columns than that
    all.emplace_back("columns", random_problem({.queries = {9}, .keys = {9}, .d_k = 8, .d_v = d_v}, DType::f32));
  all.emplace_back("three tiles",
                   random_problem({.queries = {150, 3}, .keys = {150, 3}, .d_k = 64, .d_v = 64}, DType::f32));
  all.back().second.options.causal = true;
  all.emplace_back("wide values", random_problem({.queries = {70}, .keys = {140}, .d_k = 64, .d_v = 96}, DType::f32));
  for (const bool narrow : {false, true})
    for (const auto& [name, p] : all) EXPECT_LT(device_error(p, narrow), 0.02) << name << narrow;
}

// Queries, keys and values that share rows share a gradient there, too; columns that nobody reads have zeros.
TEST(Attention, HeadsWithinLongerRowsAreTheSameOnEveryDevice) {
  const AttentionOptions options{.query_sequences = Sequences::from_lengths({6, 1}),
                                 .key_sequences = Sequences::from_lengths({6, 1}),
                                 .causal = true};
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_LT(device_error(
                  [&](const std::vector<Tensor>& t) {
                    return attention({.x = t[0], .column = 3, .heads = 4, .d = 4},
                                     {.x = t[0], .column = 19, .heads = 2, .d = 4},
                                     {.x = t[0], .column = 27, .heads = 2, .d = 4}, options);
                  },
                  {normal({7, 36}, {.dtype = dtype, .seed = 1})}),
              dtype == DType::f32 ? 1e-5 : 1e-12);
  }
}

TEST(Attention, NamesBothDevices) {
  Problem p = random_problem({.queries = {3}, .keys = {4}}, DType::f32);
  p.k = p.k.to(Plain{});
  EXPECT_EQ(message_of<ShapeError>([&] { attention(p.q, p.k, p.v, p.options); }),
            "attention: the input is on cpu but another tensor on plain");
}

}  // namespace
}  // namespace attune

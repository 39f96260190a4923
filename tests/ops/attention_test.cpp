#include "attune/ops/attention.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

struct Problem {
  Tensor q, k, v;
  AttentionOptions options;
};

struct Sizes {
  std::vector<int32_t> queries, keys;
  int64_t heads = 2, kv_heads = 2, d_k = 5, d_v = 3;
};

Problem random_problem(const Sizes& s, DType dtype, uint64_t seed = 1) {
  Problem p;
  p.options.query_sequences = Sequences::from_lengths(s.queries);
  p.options.key_sequences = Sequences::from_lengths(s.keys);
  p.q = normal({p.options.query_sequences.total(), s.heads, s.d_k}, {.dtype = dtype, .seed = seed});
  p.k = normal({p.options.key_sequences.total(), s.kv_heads, s.d_k}, {.dtype = dtype, .seed = seed + 1});
  p.v = normal({p.options.key_sequences.total(), s.kv_heads, s.d_v}, {.dtype = dtype, .seed = seed + 2});
  return p;
}

// The formula, one number at a time: what every fast kernel has to agree with.
Tensor reference(const Problem& p, Tensor* weights = nullptr) {
  const AttentionOptions& o = p.options;
  const Tensor q = p.q.to(DType::f64), k = p.k.to(DType::f64), v = p.v.to(DType::f64);
  const int64_t heads = q.size(1), group = heads / k.size(1), d_k = q.size(2), d_v = v.size(2);
  const double scale = o.scale > 0 ? o.scale : 1 / std::sqrt(static_cast<double>(d_k));
  Tensor out = Tensor::zeros({q.size(0), heads, d_v}, {.dtype = DType::f64});
  const int64_t most_q = o.query_sequences.max_length(), most_k = o.key_sequences.max_length();
  if (weights) *weights = Tensor::zeros({o.query_sequences.count(), heads, most_q, most_k}, {.dtype = DType::f64});
  for (int64_t s = 0; s < o.query_sequences.count(); ++s) {
    const int64_t queries = o.query_sequences.length(s), keys = o.key_sequences.length(s);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t q_row = (o.query_sequences.begin(s) + i) * heads + h;
        std::vector<double> w(static_cast<size_t>(keys));
        double total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const int64_t mask_row = (o.mask.defined() ? (o.mask.size(0) == 1 ? 0 : s) * o.mask.size(1) + i : 0);
          const bool allowed = (!o.causal || j <= i + keys - queries) &&
                               (!o.mask.defined() || o.mask.data<uint8_t>()[mask_row * o.mask.size(2) + j] != 0);
          const int64_t k_row = (o.key_sequences.begin(s) + j) * k.size(1) + h / group;
          double score = 0;
          for (int64_t c = 0; c < d_k; ++c)
            score += q.data<double>()[q_row * d_k + c] * k.data<double>()[k_row * d_k + c];
          w[static_cast<size_t>(j)] = allowed ? std::exp(score * scale) : 0;
          total += w[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < keys && total > 0; ++j) {
          const double weight = w[static_cast<size_t>(j)] / total;
          if (weights) weights->data<double>()[((s * heads + h) * most_q + i) * most_k + j] = weight;
          const bool keep = !o.dropout.active() || kept(o.dropout, q_row, j);
          const double factor = keep ? weight / (1 - o.dropout.probability) : 0;
          const int64_t v_row = (o.key_sequences.begin(s) + j) * k.size(1) + h / group;
          for (int64_t c = 0; c < d_v; ++c)
            out.data<double>()[q_row * d_v + c] += factor * v.data<double>()[v_row * d_v + c];
        }
      }
    }
  }
  return out;
}

Tensor random_mask(const Sizes& s, bool per_sequence) {
  const Sequences q = Sequences::from_lengths(s.queries), k = Sequences::from_lengths(s.keys);
  const int64_t blocks = per_sequence ? q.count() : 1;
  const Tensor draw = normal({blocks, q.max_length(), k.max_length()}, {.seed = 99});
  Tensor mask = Tensor::empty(draw.shape(), {.dtype = DType::u8});
  for (int64_t i = 0; i < draw.numel(); ++i) mask.data<uint8_t>()[i] = draw.data<double>()[i] > -0.5;
  return mask;
}

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
    Tensor expected, weights;
    reference(p, &expected);
    p.options.weights = &weights;
    attention(p.q, p.k, p.v, p.options);
    EXPECT_LT(relative_error(weights, expected), 1e-12) << name;
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

TEST(Attention, SameBitsForEveryThreadCount) {
  const int threads = thread_count();
  auto run = [](int n) {
    set_thread_count(n);
    Problem p = random_problem({.queries = {20, 70, 5}, .keys = {20, 70, 5}, .d_k = 16, .d_v = 16}, DType::f32);
    p.options.dropout = {.probability = 0.1, .seed = 8};
    for (Tensor* t : {&p.q, &p.k, &p.v}) require_gradient(*t);
    const Tensor out = attention(p.q, p.k, p.v, p.options);
    backward(out);
    return std::vector<Tensor>{out.detach(), gradient(p.q), gradient(p.k), gradient(p.v)};
  };
  const auto one = run(1), two = run(2);
  set_thread_count(threads);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
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

}  // namespace
}  // namespace attune

#include "attune/ops/attention/guided_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/ops/attention/attention.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// Three sequences with 3, 1 and 4 queries and 5, 2 and 3 keys; queries 1 and 4 have no links.
GuidedAttentionOptions some_links() {
  return {.query_sequences = Sequences::from_lengths({3, 1, 4}),
          .key_sequences = Sequences::from_lengths({5, 2, 3}),
          .links = {.offsets = {0, 2, 2, 3, 4, 4, 7, 8, 9}, .keys = {4, 0, 3, 1, 0, 1, 2, 2, 0}},
          .head = 2,
          .loss_scale = 0.7};
}

struct Heads {
  Tensor q = normal({8, 4, 6}, {.seed = 1});
  Tensor k = normal({10, 2, 6}, {.seed = 2});  // grouped: heads 2 and 3 read key head 1
};

Tensor loss_of(const std::vector<Tensor>& t, const GuidedAttentionOptions& options) {
  return guided_attention_loss(head_columns(t[0]), head_columns(t[1]), options);
}

TEST(GuidedAttention, IsTheCrossEntropyOfTheAttentionWeights) {
  const Heads heads;
  for (const double soft_cap : {0.0, 0.8}) {
    GuidedAttentionOptions options = some_links();
    options.soft_cap = soft_cap;
    const Tensor values = normal({10, 2, 3});
    const AttentionResult attended = attention(
        head_columns(heads.q), head_columns(heads.k), head_columns(values),
        {.query_sequences = options.query_sequences, .key_sequences = options.key_sequences, .soft_cap = soft_cap},
        true);
    double expected = 0;
    int64_t row = 0;
    for (int64_t s = 0; s < 3; ++s) {
      for (int64_t query = 0; query < options.query_sequences.length(s); ++query, ++row) {
        const int32_t begin = options.links.offsets[static_cast<size_t>(row)],
                      end = options.links.offsets[static_cast<size_t>(row) + 1];
        for (int32_t i = begin; i < end; ++i) {
          const Tensor& w = attended.weights;  // [sequences, heads, most queries, most keys]
          const int64_t key = options.links.keys[static_cast<size_t>(i)];
          const int64_t at = ((s * w.size(1) + options.head) * w.size(2) + query) * w.size(3) + key;
          expected -= std::log(w.values<double>()[static_cast<size_t>(at)]) / (end - begin);
        }
      }
    }
    EXPECT_NEAR(loss_of({heads.q, heads.k}, options).item(), 0.7 * expected, 1e-12) << soft_cap;
  }
}

TEST(GuidedAttention, GradientMatchesFiniteDifferences) {
  const Heads heads;
  for (const double soft_cap : {0.0, 0.8}) {
    GuidedAttentionOptions options = some_links();
    options.soft_cap = soft_cap;
    EXPECT_LT(gradient_error([&](const std::vector<Tensor>& t) { return loss_of(t, options); }, {heads.q, heads.k}),
              1e-7)
        << soft_cap;
  }
}

TEST(GuidedAttention, ReadsHeadsWithinLongerRows) {
  const Tensor rows = normal({10, 20}, {.seed = 3});
  const HeadColumns k{.x = rows, .column = 4, .heads = 2, .d = 6};
  const Heads heads;
  EXPECT_LT(gradient_error(
                [&](const std::vector<Tensor>& t) {
                  return guided_attention_loss(head_columns(t[0]), {t[1], k.column, k.heads, k.d}, some_links());
                },
                {heads.q, rows}),
            1e-7);
}

// With a head of width 1, keys that are unit vectors would be needed to read scores off; instead the scores are made by
// a query and keys of width n: q = scores, k = the identity.
TEST(GuidedAttention, TheGradientOfTheScoresIsAttentionLessAlignment) {
  const std::vector<double> scores = {0.3, -1, 2};
  Tensor q = Tensor::from({1, 1, 3}, scores);
  require_gradient(q);
  const Tensor k = Tensor::from({3, 1, 3}, std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  const GuidedAttentionOptions options{.query_sequences = Sequences::from_lengths({1}),
                                       .key_sequences = Sequences::from_lengths({3}),
                                       .links = {.offsets = {0, 2}, .keys = {0, 2}},
                                       .scale = 1,
                                       .loss_scale = 0.25};
  backward(guided_attention_loss(head_columns(q), head_columns(k), options));
  double total = 0;
  for (const double s : scores) total += std::exp(s);
  for (size_t j = 0; j < 3; ++j)
    EXPECT_NEAR(gradient(q).values<double>()[j], 0.25 * (std::exp(scores[j]) / total - (j == 1 ? 0 : 0.5)), 1e-15) << j;
}

TEST(GuidedAttention, IsTheSameOnEveryDevice) {
  const auto f = [](const std::vector<Tensor>& t) { return loss_of(t, some_links()); };
  EXPECT_LT(device_error(f, {normal({8, 4, 6}, {.dtype = DType::f32, .seed = 1}),
                             normal({10, 2, 6}, {.dtype = DType::f32, .seed = 2})}),
            1e-6);
}

TEST(GuidedAttention, ThreadsDoNotChangeABit) {
  const std::vector<int32_t> lengths(33, 7);
  GuidedAttentionOptions options{.query_sequences = Sequences::from_lengths(lengths),
                                 .key_sequences = Sequences::from_lengths(lengths)};
  for (int32_t row = 0; row < 33 * 7; ++row) {
    options.links.keys.push_back(row * 5 % 7);
    options.links.offsets.push_back(row + 1);
  }
  const auto results = [&](int64_t threads) {
    const ThreadScope scope(threads);
    return outputs_and_gradients(
        [&](const std::vector<Tensor>& t) { return loss_of(t, options); },
        {normal({231, 1, 5}, {.dtype = DType::f32, .seed = 4}), normal({231, 1, 5}, {.dtype = DType::f32, .seed = 5})},
        Cpu{});
  };
  const std::vector<Tensor> one = results(1), three = results(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], three[i])) << i;
}

TEST(GuidedAttention, RefusesLinksThatDoNotFit) {
  const Heads heads;
  const auto refused = [&](auto&& change) {
    GuidedAttentionOptions options = some_links();
    change(options);
    return message_of<Error>([&] { loss_of({heads.q, heads.k}, options); });
  };
  EXPECT_THAT(refused([](auto& o) { o.links.keys[1] = 5; }), HasSubstr("query 0 has a link to key 5 of 5"));
  EXPECT_THAT(refused([](auto& o) { o.links.keys[1] = -1; }), HasSubstr("query 0 has a link to key -1 of 5"));
  EXPECT_THAT(refused([](auto& o) { o.links.offsets.pop_back(); }), HasSubstr("8 offsets"));
  EXPECT_THAT(refused([](auto& o) { std::swap(o.links.offsets[1], o.links.offsets[3]); }),
              HasSubstr("the links of query 1 end before they begin"));
  EXPECT_THAT(refused([](auto& o) { o.links.offsets[1] = 1000; }),
              HasSubstr("the links of query 1 end before they begin"));
  EXPECT_THAT(refused([](auto& o) { o.soft_cap = -1; }), HasSubstr("soft_cap"));
  EXPECT_THAT(refused([](auto& o) { o.scale = -1; }),
              HasSubstr("guided_attention_loss: scale = -1, needs a positive number, or 0 for 1 / sqrt(d_k)"));
  EXPECT_THAT(refused([](auto& o) { o.links.offsets.clear(); }), HasSubstr("0 offsets"));
  EXPECT_THAT(refused([](auto& o) { o.head = 4; }), HasSubstr("head 4 of 4"));
  EXPECT_THAT(refused([](auto& o) { o.key_sequences = Sequences::from_lengths({10}); }), HasSubstr("3 sequences"));
}

}  // namespace
}  // namespace attune

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/json_fields.h"
#include "tests/models/small_config.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr CrossEntropyOptions kOptions{.label_smoothing = 0.1, .scale = 0.25};

// Every kind of cross-attention; the guided head is the third of the first layer.
std::vector<TransformerConfig> configs() {
  std::vector<TransformerConfig> all;
  for (const AttentionKind& kind :
       {AttentionKind(MultiHead{}), AttentionKind(MultiHead{.kv_heads = 2, .head_norm = true, .soft_cap = 3}),
        AttentionKind(MultiHead{.kv_heads = 1}), AttentionKind(MultiHeadLatent{.latent_dim = 6})}) {
    all.push_back(small_config(Architecture::encoder_decoder));
    all.back().cross_attention = kind;
    all.back().alignment_layer = 1;
    all.back().alignment_head = 3;
  }
  return all;
}

const PackedTokens kSource = random_tokens({5, 1, 9}, 1), kTarget = random_tokens({7, 3, 1}, 2);
const Indices kLabels = uniform_ids(11, kVocab, 3);

GuidedAlignment some_links(double weight) {
  return {.links = {.offsets = {0, 1, 3, 3, 3, 3, 4, 4, 5, 6, 6, 7}, .keys = {4, 0, 2, 1, 0, 0, 8}}, .weight = weight};
}

TEST(GuidedAlignment, AddsTheCrossEntropyOfTheHeadToTheLoss) {
  for (const TransformerConfig& config : configs()) {
    const auto model = build_transformer(config, 3);
    const CrossEntropy plain = model->loss(kSource, kTarget, kLabels, kOptions);
    const CrossEntropy guided = model->loss(kSource, kTarget, kLabels, kOptions, some_links(2));
    const NoGrad no_grad;
    const Tensor weights =
        model->decode_with_weights(model->encode(kSource), kSource.sequences, kTarget).cross_weights[0];
    const auto weight = [&](int64_t sequence, int64_t query, int64_t key) {
      const int64_t at = ((sequence * 4 + 2) * weights.size(2) + query) * weights.size(3) + key;
      return std::log(static_cast<double>(weights.values<float>()[static_cast<size_t>(at)]));
    };
    const double expected = weight(0, 0, 4) + (weight(0, 1, 0) + weight(0, 1, 2)) / 2 + weight(0, 5, 1) +
                            weight(1, 0, 0) + weight(1, 1, 0) + weight(2, 0, 8);
    EXPECT_NEAR(guided.loss.item() - plain.loss.item(), -2 * 0.25 * expected, 1e-5) << write_fields(config).dump();
    EXPECT_EQ(guided.sum_negative_log_likelihood.item(), plain.sum_negative_log_likelihood.item());
    EXPECT_EQ(guided.correct.item(), plain.correct.item());
  }
}

TEST(GuidedAlignment, ComputingActivationsAgainChangesNoBit) {
  for (TransformerConfig config : configs()) {
    config.alignment_layer = 2;
    std::vector<std::vector<Tensor>> gradients;
    for (const bool again : {false, true}) {
      const auto model = build_transformer(config, 3);
      set_activation_checkpointing(*model, again);
      require_gradients(*model);
      backward(model->loss(kSource, kTarget, kLabels, kOptions, some_links(0.5)).loss);
      std::vector<Tensor>& found = gradients.emplace_back();
      for (const NamedParameter& p : trained_parameters(*model)) found.push_back(gradient(*p.tensor));
    }
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      ASSERT_EQ(gradients[0][i].defined(), gradients[1][i].defined());
      if (gradients[0][i].defined()) {
        EXPECT_TRUE(same_bits(gradients[0][i], gradients[1][i])) << i;
      }
    }
  }
}

TEST(GuidedAlignment, AStepOfTheGradientBringsTheHeadNearer) {
  const auto model = build_transformer(configs()[0], 3);
  const auto alignment_loss = [&] {
    return model->loss(kSource, kTarget, kLabels, kOptions, some_links(1)).loss.item() -
           model->loss(kSource, kTarget, kLabels, kOptions).loss.item();
  };
  require_gradients(*model);
  const double before = alignment_loss();
  backward(model->loss(kSource, kTarget, kLabels, kOptions, some_links(100)).loss);
  for (const NamedParameter& p : trained_parameters(*model)) {
    const Tensor g = gradient(*p.tensor);
    if (!g.defined()) continue;
    for (size_t i = 0; i < static_cast<size_t>(g.numel()); ++i)
      p.tensor->values<float>()[i] -= 1e-4f * g.values<float>()[i];
  }
  EXPECT_LT(alignment_loss(), before);
}

TEST(GuidedAlignment, NeedsAHeadOfTheModel) {
  TransformerConfig config = configs()[0];
  config.alignment_layer = 0;
  const auto model = build_transformer(config);
  EXPECT_THAT(message_of<ConfigError>([&] { model->loss(kSource, kTarget, kLabels, kOptions, some_links(1)); }),
              HasSubstr("alignment_layer = 0"));
  config.alignment_layer = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { config.validate(); }), HasSubstr("alignment_layer = 3"));
  config.alignment_layer = 1;
  config.alignment_head = 0;
  EXPECT_THAT(message_of<ConfigError>([&] { config.validate(); }), HasSubstr("alignment_head = 0"));
  config.alignment_head = 5;
  EXPECT_THAT(message_of<ConfigError>([&] { config.validate(); }), HasSubstr("alignment_head = 5"));
}

}  // namespace
}  // namespace attune

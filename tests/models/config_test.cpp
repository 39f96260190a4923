// What a configuration refuses, and what it names then.

#include "attune/models/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "attune/models/build.h"
#include "tests/models/small_config.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(TransformerConfig, WhatLayersCannotHaveTogether) {
  const auto message = [](auto&& change) {
    TransformerConfig c = small_config(Architecture::decoder_lm);
    change(c);
    return message_of<ConfigError>([&] { c.validate(); });
  };
  using Config = TransformerConfig;
  const auto expect = [](const std::string& found, const char* part) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect(message([](Config& c) { c.layer_attention = {LayerAttention::local}; }), "layer_attention: has 1 entries");
  expect(message([](Config& c) {
           c.layer_attention = {LayerAttention::local, LayerAttention::global};
         }),
         "local_window = 0");
  expect(message([](Config& c) {
           c.layer_attention = {LayerAttention::local, LayerAttention::global};
           c.local_window = 2;
           c.local_positions = AlibiPositions{};
         }),
         "local_positions = \"alibi\"");
  for (const auto& [positions, part] :
       {std::pair(RotaryOptions{.base = 0.5}, "local_positions.base = 0.5: needs a finite number of at least 1"),
        std::pair(RotaryOptions{.dimensions = 6}, "local_positions.dimensions = 6: d_model / heads is 4")})
    expect(message([&local = positions](Config& c) {
             c.layer_attention = {LayerAttention::local, LayerAttention::global};
             c.local_window = 2;
             c.local_positions = local;
           }),
           part);
  expect(message([](Config& c) {
           c.layer_attention = {LayerAttention::local, LayerAttention::global};
           c.local_window = 2;
           c.positions = RotaryOptions{};
           c.local_positions = NoPositions{};
           c.attention = MultiHeadLatent{.rotary_dim = 2};
         }),
         "attention.rotary_dim = 2: needs local_positions = \"rotary\"");
  expect(message([](Config& c) {
           c.first_norm = false;
           c.share_layers = true;
         }),
         "first_norm is false");
  expect(message([](Config& c) {
           c.first_norm = false;
           c.norm = NormPlacement::post;
         }),
         "first_norm = false");
  expect(message([](Config& c) {
           c.parallel_residual = true;
           c.norm = NormPlacement::post;
         }),
         "parallel_residual = true");
  expect(message([](Config& c) { c.logit_soft_cap = -1; }), "logit_soft_cap = -1");
  expect(message([](Config& c) { c.attention = MultiHead{.soft_cap = -1}; }), "attention.soft_cap = -1");
  expect(message([](Config& c) { c.layer_groups = 2; }), "layer_groups = 2: needs");
  expect(message([](Config& c) {
           c.layers = 6;
           c.share_layers = true;
           c.layer_groups = 2;
           c.layer_block = 2;
         }),
         "layer_groups = 2 and layer_block = 2: their product has to divide the layers, 6");
  expect(message([](Config& c) {
           c.attention = MultiHead{.scale_by_layer = true};
           c.share_layers = true;
         }),
         "attention.scale_by_layer = true: needs share_layers = false");
  expect(message([](Config& c) { c.attention = MultiHead{.head_dim = 5000}; }), "attention.head_dim = 5000");
  expect(message([](Config& c) {
           c.architecture = Architecture::encoder_masked_lm;
           c.embedding_dim = 6;
         }),
         "embedding_dim = 6");
}

TEST(TransformerConfig, ExpertsThatCannotBeAreRefused) {
  const auto message = [](const Experts& experts, bool share_layers = false) {
    TransformerConfig c = small_config(Architecture::decoder_lm);
    c.feed_forward = experts;
    c.share_layers = share_layers;
    return message_of<ConfigError>([&] { c.validate(); });
  };
  EXPECT_EQ(message({.experts = 0}), "feed_forward.experts = 0: needs a number from 1 to 4096");
  EXPECT_EQ(message({.experts = 4, .experts_per_token = 5}),
            "feed_forward.experts_per_token = 5: needs a number from 1 to 4");
  EXPECT_EQ(message({.groups = 3}), "feed_forward.groups = 3: 8 experts cannot be divided into as many equal groups");
  EXPECT_EQ(message({.d_ff = -1}), "feed_forward.d_ff = -1: needs a number from 0 to 1048576");
  EXPECT_EQ(message({.shared_experts = 4096, .d_ff = 1 << 20}),
            "feed_forward.shared_experts = 4096: as wide as 1048576 each they are wider than 1048576");
  EXPECT_EQ(message({.dense_layers = {0, 2}}), "feed_forward.dense_layers: a layer = 2: needs a number from 0 to 1");
  EXPECT_EQ(message({.bias_rate = 0.1}), "feed_forward.bias_rate = 0.1: needs choice_bias = true");
  EXPECT_EQ(message({.dense_layers = {0}}, true),
            "share_layers = true: needs layers that are alike, but feed_forward has dense_layers");
}

TEST(FeedForwardKind, ItsSummaryCountsLayersFromOne) {
  const auto end_of_summary = [](std::vector<int64_t> dense_layers) {
    const std::string text = summary(Experts{.d_ff = 64, .dense_layers = std::move(dense_layers)}, {});
    return text.substr(std::min(text.find(", none"), text.size()));
  };
  EXPECT_EQ(end_of_summary({}), "");
  EXPECT_EQ(end_of_summary({0}), ", none in layer 1");
  EXPECT_EQ(end_of_summary({0, 1}), ", none in layers 1, 2");
  EXPECT_EQ(end_of_summary({9, 2, 0, 1, 7, 2}), ", none in layers 1 to 3, 8, 10");
}

TEST(TransformerConfig, ParametersOfOneTokenAreThoseOfItsExperts) {
  TransformerConfig c = small_config(Architecture::decoder_lm);
  EXPECT_EQ(count_parameters(c).active(), count_parameters(c).total());
  c.feed_forward = Experts{.experts = 8, .experts_per_token = 2, .dense_layers = {1}};
  const int64_t of_an_expert = 2 * 16 * 12 + 16 + 12;
  EXPECT_EQ(count_parameters(c).total() - count_parameters(c).active(), 6 * of_an_expert);
}

TEST(TransformerConfig, CrossAttentionHasNoPlaces) {
  TransformerConfig c = small_config(Architecture::encoder_decoder);
  c.cross_attention = MultiHead{.pattern = SlidingWindow{.size = 4}};
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }),
            "cross_attention.pattern = \"window\": cross-attention has no common places of queries and keys, needs "
            "\"full\"");
  c = small_config(Architecture::encoder_decoder);
  c.positions = RotaryOptions{};
  c.cross_attention = MultiHeadLatent{.rotary_dim = 4};
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }),
            "cross_attention.rotary_dim = 4: cross-attention has no common places of queries and keys");
}

TEST(TransformerConfig, ImpossibleNumbersAreRefused) {
  const auto refuses = [](const std::string& message, const std::function<void(TransformerConfig&)>& change) {
    TransformerConfig c = small_config(Architecture::decoder_lm);
    change(c);
    EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }), message);
  };
  refuses("attention.kv_heads = 3: heads = 4 is not divisible by it",
          [](auto& c) { c.attention = MultiHead{.kv_heads = 3}; });
  refuses("positions.max_length = 8 is below context_length = 16",
          [](auto& c) { c.positions = LearnedPositions{.max_length = 8}; });
  refuses("positions.dimensions = 6: d_model / heads is 4",
          [](auto& c) { c.positions = RotaryOptions{.dimensions = 6}; });
  refuses("positions.base = 0.5: needs a finite number of at least 1",
          [](auto& c) { c.positions = RotaryOptions{.base = 0.5}; });
  refuses("positions.pair_factors: has 1 numbers, 4 dimensions have 2 pairs", [](auto& c) {
    c.positions =
        RotaryOptions{.scaling = RotaryScaling::longrope, .factor = 2, .original_length = 8, .pair_factors = {1.0}};
  });
  refuses("positions.clip = 0: needs a number from 1 to 4096",
          [](auto& c) { c.positions = RelativePositions{.clip = 0}; });
  refuses("positions.buckets = 5: needs an even number",
          [](auto& c) { c.positions = RelativeBiasPositions{.buckets = 5}; });
  refuses("positions.max_distance = 16: needs a number from 17 to 65536",
          [](auto& c) { c.positions = RelativeBiasPositions{.max_distance = 16}; });
  refuses("positions.first = -1: needs a number from 0 to 1048576",
          [](auto& c) { c.positions = SinusoidalPositions{.first = -1}; });
  refuses("attention.scale = -1: needs a positive number, or 0 for 1 / sqrt(the width of a head)",
          [](auto& c) { c.attention = MultiHead{.scale = -1}; });
  refuses("attention.value_dim = 5000: needs a number from 0 to 4096",
          [](auto& c) { c.attention = MultiHeadLatent{.value_dim = 5000}; });
  refuses("logit_scale = 0: needs a number above 0", [](auto& c) { c.logit_scale = 0; });
}

TEST(TransformerConfig, HeadsOfTheirOwnWidthNeedNotDivideTheModel) {
  for (const AttentionKind& kind :
       {AttentionKind(MultiHead{.head_dim = 6}), AttentionKind(MultiHeadLatent{.head_dim = 6})}) {
    TransformerConfig c = small_config(Architecture::decoder_lm);
    c.heads = 3;
    c.attention = kind;
    EXPECT_EQ(parameter_count(*build_model(c)), count_parameters(c).total());
  }
  TransformerConfig c = small_config(Architecture::decoder_lm);
  c.heads = 3;
  c.attention = MultiHeadLatent{.value_dim = 6};
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }), "d_model = 16 is not divisible by heads = 3");
}

TEST(TransformerConfig, SinusoidsThatDoNotFitNameTheFieldOfTheirWidth) {
  TransformerConfig c = small_config(Architecture::encoder_classifier);
  const auto refusal = [&] { return message_of<ConfigError>([&] { c.validate(); }); };
  c.embedding_dim = 7;
  EXPECT_EQ(refusal(), "embedding_dim = 7: positions = \"sinusoidal\" need an even number");
  c.embedding_dim = 2;
  c.positions = SinusoidalPositions{.full_range = true};
  EXPECT_EQ(refusal(), "embedding_dim = 2: positions.full_range = true needs at least 4");
  c.embedding_dim = 0;
  c.d_model = 15;
  c.heads = 3;
  EXPECT_EQ(refusal(), "d_model = 15: positions = \"sinusoidal\" need an even number");
}

TEST(TransformerConfig, ImpossibleDecodersAreRefused) {
  TransformerConfig c = small_config(Architecture::encoder_decoder);
  c.decoder_heads = 3;
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }), "d_model = 16 is not divisible by decoder_heads = 3");
  c.decoder_heads = 2;
  c.decoder_attention = MultiHead{.kv_heads = 4};
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }),
            "decoder_attention.kv_heads = 4: needs a number from 0 to 2");
  c.decoder_heads = 8;
  c.decoder_attention = MultiHead{.kv_heads = 3};
  EXPECT_EQ(message_of<ConfigError>([&] { c.validate(); }),
            "decoder_attention.kv_heads = 3: decoder_heads = 8 is not divisible by it");
}

// config.json has no field for them there.
TEST(TransformerConfig, WhatAnArchitectureDoesNotHaveIsRefused) {
  const auto refusal = [](Architecture architecture, const std::function<void(TransformerConfig&)>& change) {
    TransformerConfig c = small_config(architecture);
    change(c);
    return message_of<ConfigError>([&] { c.validate(); });
  };
  const auto translation = Architecture::encoder_decoder;
  const std::string none = ": architecture = \"encoder_decoder\" has no such field";
  EXPECT_EQ(refusal(translation, [](auto& c) { c.embedding_dim = 6; }), "embedding_dim = 6" + none);
  EXPECT_EQ(refusal(translation, [](auto& c) { c.first_norm = false; }), "first_norm = false" + none);
  EXPECT_EQ(refusal(translation, [](auto& c) { c.parallel_residual = true; }), "parallel_residual = true" + none);
  EXPECT_EQ(refusal(translation,
                    [](auto& c) {
                      c.layer_attention = {LayerAttention::global, LayerAttention::global};
                    }),
            "layer_attention: the number of its entries = 2" + none);
  EXPECT_EQ(refusal(translation, [](auto& c) { c.token_types = 2; }), "token_types = 2" + none);
  EXPECT_EQ(refusal(Architecture::decoder_lm, [](auto& c) { c.token_types = 2; }),
            "token_types = 2: architecture = \"decoder_lm\" has no such field");
}

}  // namespace
}  // namespace attune

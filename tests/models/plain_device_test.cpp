// A model runs on a device whose memory the host cannot read: its loss, gradients, optimizer step, cached decoding,
// beam search and sampling agree with the CPU's.

#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/json_fields.h"
#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/decoding/sampler.h"
#include "attune/models/build.h"
#include "attune/nn/dropout.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"
#include "attune/optim/adam.h"
#include "attune/tensor/host_view.h"
#include "tests/models/every_choice.h"
#include "tests/models/small_config.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

// The model with everything at random, so that no weight of a norm is 1 and no bias 0.
std::unique_ptr<Module> make_model(const TransformerConfig& config, const Device& device) {
  auto model = build_model(config, 7);
  uint64_t stream = 0;
  for (const NamedParameter& p : named_parameters(*model))
    add_in_place(*p.tensor, normal(p.tensor->shape(), {.dtype = DType::f32, .seed = 100 + stream++, .deviation = 0.1}));
  move_parameters(*model, device);
  return model;
}

constexpr double kTolerance = 2e-5;

// 0 where there is none: of an expert that no token chose. NaN where one number is NaN.
double largest_of(const Tensor& x) {
  double largest = 0;
  if (!x.defined()) return largest;
  for (const float value : host_values<float>(x)) largest = larger_error(largest, std::abs(value));
  return largest;
}

void expect_same_training(const TransformerConfig& config, const Device& device) {
  std::vector<Tensor> losses, gradients[2], parameters[2];
  const Device devices[] = {Cpu{}, device};
  for (int d = 0; d < 2; ++d) {
    const auto model = make_model(config, devices[d]);
    require_gradients(*model);
    const DropoutScope dropout({.seed = 11, .step = 3});
    const Tensor loss = loss_of(*model, config.architecture);
    losses.push_back(loss.detach().to(Cpu{}));
    backward(loss);
    for (const NamedParameter& p : named_parameters(*model)) gradients[d].push_back(gradient(*p.tensor));
    Adam adam(named_parameters(*model), {.clip_norm = 1}, 0.9);
    adam.step(1e-3);
    for (const NamedParameter& p : named_parameters(*model)) parameters[d].push_back(p.tensor->detach());
  }
  EXPECT_LT(relative_error(losses[1], losses[0]), kTolerance);
  const auto model = build_model(config);
  const auto names = named_parameters(*model);
  double largest = 0;
  for (const Tensor& g : gradients[0]) largest = larger_error(largest, largest_of(g));
  for (size_t i = 0; i < names.size(); ++i) {
    // Softmax does not see what all keys have in common: the gradient of their bias is 0 but for rounding, and Adam
    // makes whole steps of it.
    if (largest_of(gradients[0][i]) < 1e-5 * largest) {
      EXPECT_LT(largest_of(gradients[1][i]), 2e-5 * largest) << names[i].name;
      continue;
    }
    EXPECT_LT(relative_error(gradients[1][i], gradients[0][i]), 1e-3) << names[i].name;
    EXPECT_LT(relative_error(parameters[1][i], parameters[0][i]), 1e-3) << names[i].name;
  }
}

// A language model reads prompts and goes on step by step.
void expect_same_steps(const TransformerConfig& config, const Device& device, bool panels) {
  std::vector<Tensor> logits[2];
  const Device devices[] = {Cpu{}, device};
  for (int d = 0; d < 2; ++d) {
    const auto module = make_model(config, devices[d]);
    if (panels) make_panels(*module, WeightFormat::int8);
    const auto& model = dynamic_cast<const DecoderLm&>(*module);
    KvCache cache = model.start(3);
    logits[d].push_back(model.prompt(random_tokens({4, 6, 1}, 8), cache));
    for (int32_t t = 0; t < 4; ++t) logits[d].push_back(model.step(std::vector<int32_t>{t, 2, 5}, cache));
    cache.select(std::vector<int32_t>{0, 0, 2});
    logits[d].push_back(
        model.project(model.step_states(std::vector<int32_t>{1, 2, 3, 4, 5}, std::vector<int32_t>{2, 1, 2}, cache)));
  }
  for (size_t i = 0; i < logits[0].size(); ++i)
    EXPECT_LT(relative_error(logits[1][i], logits[0][i]), panels ? 2e-3 : kTolerance) << i;
  // What is drawn from them.
  const HostView on_plain(logits[1][0]), on_cpu(logits[0][0]);
  const SamplingConfig sampling{.temperature = 0.7, .top_k = 5};
  for (size_t row = 0; row < 3; ++row) {
    const auto token = [&](const HostView& view) {
      const auto values = view.as<float>().subspan(row * kVocab, kVocab);
      return draw(token_distribution(values, {}, sampling), random_number(1, row, 0));
    };
    EXPECT_EQ(token(on_plain), token(on_cpu));
  }
}

// The logits of steps of a language model, else the loss.
std::vector<Tensor> results_of(Module& module, const TransformerConfig& config) {
  const NoGrad no_grad;
  std::vector<Tensor> results = {loss_of(module, config.architecture)};
  if (const auto* const model = dynamic_cast<const DecoderLm*>(&module)) {
    KvCache cache = model->start(3);
    results.push_back(model->prompt(random_tokens({4, 6, 1}, 8), cache));
    for (int32_t t = 0; t < 3; ++t) results.push_back(model->step(std::vector<int32_t>{t, 2, 5}, cache));
  }
  for (Tensor& result : results) result = result.to(Cpu{});
  return results;
}

// Matrices that are rounded to bfloat16 once give the bits of those that products round each time. A table that is read
// by lookups too is there with rounded numbers.
void expect_bits_of_rounded(const TransformerConfig& config, const Device& device) {
  const auto narrow = make_model(config, device), wide = make_model(config, device);
  const ParameterUses uses(*wide);
  replace_parameters(*wide, [&](const NamedParameter& p) {
    const bool is_tied = p.name.ends_with("embedding.weight") && uses.is_product_matrix(*p.tensor);
    return is_tied ? to_float32(to_bfloat16(*p.tensor)) : Tensor{};
  });
  round_matrices(*narrow);
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const auto found = results_of(*narrow, config), expected = results_of(*wide, config);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
}

void expect_same_search(const TransformerConfig& config, const Device& device) {
  const PackedTokens source = random_tokens({5, 1, 9}, 1);
  BeamSearchOptions options{.special = {.pad = 0, .unk = 1, .bos = 2, .eos = 3}};
  options.generation = {.beam_size = 3, .max_length = 8, .coverage_penalty = 0.2};
  options.n_best = 2;
  options.alignments = true;
  const auto search = [&](const Device& on) {
    const auto module = make_model(config, on);
    return beam_search(dynamic_cast<const Transformer&>(*module), source, options);
  };
  const auto found = search(device), expected = search(Cpu{});
  for (size_t s = 0; s < expected.size(); ++s) {
    ASSERT_EQ(found[s].size(), expected[s].size());
    for (size_t h = 0; h < expected[s].size(); ++h) {
      EXPECT_EQ(found[s][h].tokens, expected[s][h].tokens);
      EXPECT_EQ(found[s][h].alignment, expected[s][h].alignment);
      EXPECT_NEAR(found[s][h].score, expected[s][h].score, 1e-4);
    }
  }
}

const std::vector<PositionKind> kPositions = {SinusoidalPositions{.order = SinusoidOrder::halves, .first = 2},
                                              LearnedPositions{},
                                              RelativePositions{2},
                                              RelativeBiasPositions{.buckets = 8, .max_distance = 6},
                                              RotaryOptions{.pairing = RotaryPairing::interleaved},
                                              AlibiPositions{},
                                              NoPositions{}};

std::vector<AttentionKind> attention_kinds(const PositionKind& positions) {
  if (std::holds_alternative<RelativePositions>(positions)) return {MultiHead{.kv_heads = 2}};
  const int64_t rotary = std::holds_alternative<RotaryOptions>(positions) ? 4 : 0;
  return {
      MultiHead{.pattern = SlidingWindow{.size = 3}}, MultiHead{.kv_heads = 1, .bias = AttentionBias::none, .scale = 1},
      MultiHeadLatent{.latent_dim = 6,
                      .query_latent_dim = 5,
                      .latent_norm = true,
                      .rotary_dim = rotary,
                      .pattern = FixedAttention{.stride = 3, .summary = 1}},
      MultiHeadLatent{.head_dim = 3, .value_dim = 5, .rotary_dim = rotary, .pattern = StridedAttention{.stride = 2}}};
}

// In these lists; norms and activations are taken from their names.
TEST(PlainDevice, EveryPositionAttentionAndPatternIsTried) {
  expect_every_alternative(kPositions);
  const std::vector<AttentionKind> kinds = attention_kinds(NoPositions{});
  expect_every_alternative(kinds);
  std::vector<AttentionPattern> patterns;
  for (const AttentionKind& kind : kinds) patterns.push_back(pattern_of(kind));
  expect_every_alternative(patterns);
}

// Norms and activations take turns, so that each stands beside several attentions and positions.
template <class Check>
void walk(Architecture architecture, Check&& check) {
  size_t turn = 0;
  for (const PositionKind& positions : kPositions)
    for (const AttentionKind& attention : attention_kinds(positions)) {
      TransformerConfig c = small_config(architecture, 0.1);
      c.positions = positions;
      c.norm = turn % 2 == 0 ? NormPlacement::pre : NormPlacement::post;
      c.norm_form = in_turn<NormForm>(turn);
      c.activation = in_turn<FeedForwardActivation>(turn);
      if (turn % 4 == 1) c.feed_forward = Experts{.experts = 4, .shared_experts = 1, .d_ff = 7};
      if (turn % 4 == 3)
        c.feed_forward =
            Experts{.experts = 4, .dense_layers = {0}, .scores = ExpertScores::sigmoid, .choice_bias = true};
      c.share_projection = turn % 2 == 0 && architecture != Architecture::encoder_classifier;
      c.logit_scale = turn % 2 == 0 && architecture != Architecture::encoder_classifier ? 0.5 : 1;
      c.pooler = turn % 2 == 0;
      c.pooling = turn % 3 == 0 ? Pooling::mean : Pooling::first;
      ++turn;
      if (architecture == Architecture::encoder_decoder) {
        c.encoder_attention = c.decoder_attention = attention;
        if (const auto* latent = std::get_if<MultiHeadLatent>(&attention))
          c.cross_attention = MultiHeadLatent{.latent_dim = latent->latent_dim};
      } else {
        c.attention = attention;
      }
      for (const Device& device : devices_under_test()) {
        SCOPED_TRACE(device.text() + " " + write_fields(c).dump());
        check(c, device);
      }
    }
}

TEST(PlainDevice, TrainsLanguageModels) {
  walk(Architecture::decoder_lm, expect_same_training);
}
TEST(PlainDevice, TrainsEncoderDecoders) {
  walk(Architecture::encoder_decoder, expect_same_training);
}
TEST(PlainDevice, TrainsClassifiers) {
  walk(Architecture::encoder_classifier, expect_same_training);
}
TEST(PlainDevice, TrainsMaskedLanguageModels) {
  walk(Architecture::encoder_masked_lm, expect_same_training);
}
TEST(PlainDevice, LanguageModelsGoOnFromPrompts) {
  walk(Architecture::decoder_lm, [](const TransformerConfig& c, const Device& device) {
    expect_same_steps(c, device, false);
    expect_same_steps(c, device, true);
  });
}
TEST(PlainDevice, MatricesInBfloat16HaveTheBitsOfRoundedOnes) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_decoder,
                                          Architecture::encoder_classifier, Architecture::encoder_masked_lm})
    walk(architecture, expect_bits_of_rounded);
}
TEST(PlainDevice, BeamSearchFindsTheSame) {
  walk(Architecture::encoder_decoder, expect_same_search);
}

}  // namespace
}  // namespace attune

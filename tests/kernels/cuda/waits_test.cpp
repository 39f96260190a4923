// How often the host waits for a GPU that trains or evaluates a model.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "attune/kernels/cuda/runtime/emulation.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/models/build.h"
#include "attune/train/batch_loss.h"
#include "attune/train/evaluate.h"
#include "attune/train/update.h"
#include "tests/models/small_config.h"

namespace attune::cuda {
namespace {

constexpr Cuda kTrainingGpu{0};

template <class F>
uint64_t waits_in(F&& f) {
  const uint64_t before = waits_of(kTrainingGpu);
  f();
  return waits_of(kTrainingGpu) - before;
}

std::vector<int32_t> ids(int64_t count, uint64_t seed, int32_t bound = kVocab) {
  const Indices drawn = uniform_ids(count, bound, seed);
  return {drawn.values().begin(), drawn.values().end()};
}

PackedBatch pairs(uint64_t seed) {
  return {.source = ids(9, seed),
          .source_offsets = {0, 3, 9},
          .target_input = ids(7, seed + 10),
          .target_offsets = {0, 5, 7},
          .labels = ids(7, seed + 20)};
}

LanguageModelBatch windows(uint64_t seed) {
  return {.input = ids(12, seed), .offsets = {0, 8, 12}, .labels = ids(12, seed + 10)};
}

LabelledBatch texts(uint64_t seed) {
  return {.tokens = ids(12, seed), .offsets = {0, 8, 12}, .labels = ids(2, seed, 3), .types = {}, .values = {0.5, -1}};
}

MaskedBatch masked(uint64_t seed) {
  return {.tokens = ids(12, seed), .offsets = {0, 8, 12}, .rows = {1, 4, 10}, .labels = ids(3, seed + 10)};
}

GuidedAlignment links() {
  return {.links = {.offsets = {0, 1, 3, 3, 3, 4, 4, 5}, .keys = {0, 1, 2, 0, 5}}, .weight = 0.5};
}

// Those of one update with three batches of a model on the GPU.
template <class Model>
uint64_t waits_of_update(const std::unique_ptr<Model>& model, const std::function<TrainingBatch(uint64_t seed)>& batch,
                         UpdateInput input = {}) {
  move_parameters(*model, kTrainingGpu);
  require_gradients(*model);
  Adam adam(trained_parameters(*model), {.kind = OptimizerKind::adamw, .weight_decay = 0.1, .clip_norm = 0.1}, 0.9);
  const std::vector<TrainingBatch> batches = {batch(1), batch(2), batch(3)};
  input.batches = batches;
  input.learning_rate = 0.01;
  input.label_smoothing = 0.1;
  input.device = kTrainingGpu;
  return waits_in([&] { update(*model, adam, input); });
}

TEST(Waits, AreCounted) {
  const Tensor x = Tensor::full({3}, 2, {.device = kTrainingGpu});
  EXPECT_EQ(waits_in([&] { x.fill(3); }), 0u);
  EXPECT_EQ(waits_in([&] { x.clone().to(Cpu{}); }), 1u);
  EXPECT_EQ(waits_in([&] { synchronize(kTrainingGpu); }), 1u);
  EXPECT_EQ(waits_in([&] { first_not_finite(x); }), 1u);
}

TEST(Waits, AnUpdateOfATranslationModelHasOne) {
  TransformerConfig config = small_config(Architecture::encoder_decoder, 0.1);
  config.alignment_layer = config.alignment_head = 1;
  const auto model = build_transformer(config);
  const auto batch = [&](uint64_t seed) { return training_batch(*model, pairs(seed)); };
  const auto guided = [&](uint64_t seed) { return training_batch(*model, pairs(seed), links()); };
  EXPECT_EQ(waits_of_update(model, batch), 1u);
  EXPECT_EQ(waits_of_update(model, batch, {.batches = {}, .r_drop = 2}), 1u);
  EXPECT_EQ(waits_of_update(model, guided), 1u);
}

TEST(Waits, AnUpdateOfALanguageModelHasOne) {
  const auto model = build_decoder_lm(small_config(Architecture::decoder_lm, 0.1));
  const auto batch = [&](uint64_t seed) { return training_batch(*model, windows(seed)); };
  EXPECT_EQ(waits_of_update(model, batch), 1u);
  EXPECT_EQ(waits_of_update(model, batch, {.batches = {}, .precision = ProductPrecision::bfloat16}), 1u);
  set_activation_checkpointing(*model, true);
  EXPECT_EQ(waits_of_update(model, batch), 1u);
}

TEST(Waits, AnUpdateOfAnEncoderHasOne) {
  TransformerConfig config = small_config(Architecture::encoder_classifier, 0.1);
  const auto classifier = build_encoder_classifier(config);
  EXPECT_EQ(waits_of_update(classifier, [&](uint64_t seed) { return training_batch(*classifier, texts(seed)); }), 1u);
  config.label_scores = LabelScores::none;
  config.labels = {"score"};
  const auto regression = build_encoder_classifier(config);
  EXPECT_EQ(waits_of_update(regression, [&](uint64_t seed) { return training_batch(*regression, texts(seed)); }), 1u);
  const auto model = build_encoder_masked_lm(small_config(Architecture::encoder_masked_lm, 0.1));
  EXPECT_EQ(waits_of_update(model, [&](uint64_t seed) { return training_batch(*model, masked(seed)); }), 1u);
}

// What each layer's tokens chose is a list of rows on the host; there are two layers.
TEST(Waits, ExpertsHaveOneMoreForEachLayerOfABatch) {
  TransformerConfig config = small_config(Architecture::decoder_lm, 0.1);
  config.feed_forward = Experts{.experts = 4, .d_ff = 7, .choice_bias = true, .bias_rate = 0.01};
  const auto model = build_decoder_lm(config);
  EXPECT_EQ(waits_of_update(model, [&](uint64_t seed) { return training_batch(*model, windows(seed)); }), 1u + 3 * 2);
  const TokenDocuments documents{.ids = ids(12, 1), .offsets = {0, 5, 12}};
  EXPECT_EQ(waits_in([&] { evaluate(*model, documents, 0, {.batch_tokens = 1}); }), 2u * (1 + 2));
}

// With so small a limit every text is a batch.
TEST(Waits, AnEvaluationHasOneForEachBatch) {
  const EvaluateOptions options{.batch_tokens = 1};
  const auto translation = build_transformer(small_config(Architecture::encoder_decoder));
  move_parameters(*translation, kTrainingGpu);
  const std::vector<ParallelExample> examples = {
      {ids(3, 1), ids(4, 2)}, {ids(6, 3), ids(2, 4)}, {ids(2, 5), ids(2, 6)}};
  EXPECT_EQ(waits_in([&] { evaluate(*translation, examples, 2, options); }), 3u);

  const auto classifier = build_encoder_classifier(small_config(Architecture::encoder_classifier));
  move_parameters(*classifier, kTrainingGpu);
  const std::vector<LabelledExample> labelled = {{ids(3, 1), 0}, {ids(6, 3), 2}};
  EXPECT_EQ(waits_in([&] { evaluate(*classifier, labelled, options); }), 2u);

  const auto language_model = build_decoder_lm(small_config(Architecture::decoder_lm));
  move_parameters(*language_model, kTrainingGpu);
  const TokenDocuments documents{.ids = ids(20, 1), .offsets = {0, 5, 12, 14, 20}};
  EXPECT_EQ(waits_in([&] { evaluate(*language_model, documents, 0, options); }), 4u);
}

}  // namespace
}  // namespace attune::cuda

// train.checkpoint_activations: the same training, bit for bit, in less memory.

#include <gtest/gtest.h>

#include "attune/autograd/checkpoint.h"
#include "attune/autograd/graph.h"
#include "attune/base/random.h"
#include "attune/models/build.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/precision.h"
#include "attune/train/batch_loss.h"
#include "attune/train/config.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

constexpr int32_t kVocab = 20;
const std::vector<int32_t> kOffsets = {0, 5, 6, 15};

TransformerConfig config_of(Architecture architecture, const TransformerConfig& base = {}) {
  TransformerConfig config = base;
  config.architecture = architecture;
  config.source_vocab = config.target_vocab = config.vocab = 0;
  if (architecture == Architecture::encoder_decoder) {
    config.source_vocab = config.target_vocab = kVocab;
  } else {
    config.vocab = kVocab;
  }
  config.d_model = 32;
  config.heads = 4;
  config.layers = 3;
  config.d_ff = 48;
  config.dropout = config.attention_dropout = config.activation_dropout = 0.2;
  if (architecture == Architecture::encoder_classifier) config.labels = {"a", "b", "c"};
  return config;
}

std::vector<int32_t> random_ids(uint64_t seed, uint64_t below = kVocab) {
  Random random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(kOffsets.back()));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(below));
  return ids;
}

TrainingBatch batch_for(Module& model, uint64_t seed) {
  const std::vector<int32_t> ids = random_ids(seed), labels = random_ids(seed + 1);
  if (const auto* m = dynamic_cast<Transformer*>(&model))
    return training_batch(*m, PackedBatch{.source = random_ids(seed + 2),
                                          .source_offsets = kOffsets,
                                          .target_input = ids,
                                          .target_offsets = kOffsets,
                                          .labels = labels});
  if (const auto* m = dynamic_cast<EncoderClassifier*>(&model))
    return training_batch(*m, LabelledBatch{.tokens = ids, .offsets = kOffsets, .labels = {0, 2, 1}, .types = {}});
  if (const auto* m = dynamic_cast<EncoderMaskedLm*>(&model))
    return training_batch(*m, MaskedBatch{.tokens = ids, .offsets = kOffsets, .rows = {1, 5, 9}, .labels = {4, 5, 6}});
  return training_batch(dynamic_cast<DecoderLm&>(model),
                        LanguageModelBatch{.input = ids, .offsets = kOffsets, .labels = labels});
}

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> tensors;  // gradients of a last batch, then parameters
  std::vector<std::string> names;
};

Trained train(const TransformerConfig& config, bool checkpoints, ProductPrecision precision) {
  const auto model = build_model(config, 7);
  require_gradients(*model);
  set_activation_checkpointing(*model, checkpoints);
  Adam adam(named_parameters(*model), {.clip_norm = 1});
  Trained trained;
  for (uint64_t step = 1; step <= 3; ++step) {
    const TrainingBatch batches[] = {batch_for(*model, 10 * step), batch_for(*model, 10 * step + 5)};
    const UpdateResult result = update(*model, adam,
                                       {.batches = batches,
                                        .step = static_cast<int64_t>(step),
                                        .learning_rate = 1e-2,
                                        .precision = precision,
                                        .label_smoothing = 0.1,
                                        .first_forward = 2 * step});
    trained.losses.push_back(result.loss);
    trained.losses.push_back(result.gradient_norm);
  }
  const DropoutScope dropout({.seed = 1, .step = 99});
  const ProductPrecisionScope scope(precision);
  backward(batch_for(*model, 3).loss({}).loss);
  for (const auto& [name, parameter] : named_parameters(*model)) {
    EXPECT_TRUE(gradient(*parameter).defined()) << name;
    trained.tensors.push_back(gradient(*parameter));
    trained.names.push_back("gradient of " + name);
  }
  for (const auto& [name, parameter] : named_parameters(*model)) {
    trained.tensors.push_back(parameter->detach());
    trained.names.push_back(name);
  }
  return trained;
}

void expect_the_same_training(const TransformerConfig& config) {
  for (const auto precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const Trained plain = train(config, false, precision), checkpointed = train(config, true, precision);
    EXPECT_EQ(plain.losses, checkpointed.losses);
    ASSERT_EQ(plain.tensors.size(), checkpointed.tensors.size());
    for (size_t i = 0; i < plain.tensors.size(); ++i)
      EXPECT_TRUE(same_bits(plain.tensors[i], checkpointed.tensors[i])) << plain.names[i];
  }
}

TEST(CheckpointActivations, TrainTheSameEncoderDecoder) {
  expect_the_same_training(config_of(Architecture::encoder_decoder));
  expect_the_same_training(config_of(
      Architecture::encoder_decoder,
      {.norm = NormPlacement::post, .share_embeddings = true, .share_projection = true, .share_layers = true}));
  expect_the_same_training(config_of(Architecture::encoder_decoder, {.encoder_attention = MultiHeadLatent{},
                                                                     .decoder_attention = MultiHeadLatent{},
                                                                     .cross_attention = MultiHeadLatent{}}));
}

TEST(CheckpointActivations, TrainTheSameDecoder) {
  expect_the_same_training(config_of(Architecture::decoder_lm, {.positions = RotaryOptions{}}));
  expect_the_same_training(config_of(Architecture::decoder_lm, {.share_projection = true, .share_layers = true}));
}

TEST(CheckpointActivations, TrainTheSameEncoder) {
  expect_the_same_training(config_of(Architecture::encoder_classifier));
  expect_the_same_training(config_of(Architecture::encoder_classifier, {.share_layers = true}));
  expect_the_same_training(config_of(Architecture::encoder_masked_lm));
}

// A product's epilogue may round an activation in another way than a pass of its own does: with oneDNN and AVX-512, and
// with cuBLASLt.
TEST(CheckpointActivations, TrainTheSameWithEveryActivation) {
  using enum FeedForwardActivation;
  for (const auto activation : {gelu, gelu_tanh, gelu_sigmoid, silu, tanh})
    expect_the_same_training(config_of(Architecture::decoder_lm, {.activation = activation}));
}

// Also where neither the input of a product nor its parameters require a gradient, as before the first adapter.
TEST(CheckpointActivations, ComputeTheSameWhereNothingRequiresAGradient) {
  const Tensor x = normal({70, 32}, {.dtype = DType::f32, .seed = 1});
  const Tensor w = normal({48, 32}, {.dtype = DType::f32, .seed = 2});
  for (const auto activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::gelu_sigmoid, Activation::silu, Activation::tanh}) {
    const auto layer = [&](const Tensor& in) { return linear(in, w, {}, activation); };
    const Tensor found = checkpoint({x}, [&](std::span<const Tensor> in) { return layer(in[0]); });
    EXPECT_TRUE(same_bits(found.detach(), layer(x))) << static_cast<int>(activation);
  }
}

struct PassMemory {
  int64_t kept = 0;       // by the forward pass
  int64_t most = 0;       // while the backward pass runs, beyond what was there before the forward pass
  int64_t left = 0;       // in the end, but for gradients
  int64_t gradients = 0;  // of parameters: their tensors
};

// Of six layers over one sequence that is long enough for activations to outweigh parameters.
PassMemory memory_of_a_pass(bool checkpoints) {
  TransformerConfig config = config_of(Architecture::decoder_lm, {.positions = RotaryOptions{}});  // without a table
  config.layers = 6;
  config.context_length = 1024;
  const auto model = build_model(config, 7);
  require_gradients(*model);
  set_activation_checkpointing(*model, checkpoints);
  const DropoutScope dropout({.seed = 1, .step = 1});
  const std::vector<int32_t> ids(1024, 5);
  const TrainingBatch batch = training_batch(dynamic_cast<DecoderLm&>(*model),
                                             LanguageModelBatch{.input = ids, .offsets = {0, 1024}, .labels = ids});
  const int64_t before = allocator_statistics().bytes_in_use;
  PassMemory memory;
  {
    const CrossEntropy result = batch.loss({});
    memory.kept = allocator_statistics().bytes_in_use - before;
    reset_peak_bytes();
    backward(result.loss);
    memory.most = allocator_statistics().peak_bytes_in_use - before;
  }
  for (const NamedParameter& p : named_parameters(*model))
    if (const Tensor g = gradient(*p.tensor); g.defined()) memory.gradients += g.bytes();
  clear_gradients(*model);
  memory.left = allocator_statistics().bytes_in_use - before;
  return memory;
}

TEST(CheckpointActivations, ABackwardPassFreesAsItGoes) {
  const PassMemory plain = memory_of_a_pass(false);
  EXPECT_EQ(plain.left, 0);
  EXPECT_GT(plain.kept, 4 * plain.gradients) << "else the test says nothing";
  EXPECT_LT(plain.most, plain.kept + plain.kept / 6) << "a layer's worth more, of six";
}

TEST(CheckpointActivations, TakeLessMemory) {
  const PassMemory plain = memory_of_a_pass(false), checkpointed = memory_of_a_pass(true);
  EXPECT_EQ(checkpointed.left, 0);
  EXPECT_EQ(checkpointed.gradients, plain.gradients);
  EXPECT_LT(checkpointed.kept, plain.kept / 4);
  EXPECT_LT(checkpointed.most, plain.most / 2);
}

TEST(CheckpointActivations, AreOffUnlessTheConfigurationSaysSo) {
  EXPECT_FALSE(TrainConfig{}.checkpoint_activations);
  EXPECT_TRUE(read_run_config("", {"train.checkpoint_activations=true"}).train.checkpoint_activations);
}

}  // namespace
}  // namespace attune

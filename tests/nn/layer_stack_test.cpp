#include "attune/nn/layer_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/models/transformer.h"
#include "attune/nn/dropout.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

class Stack final : public LayerStack {
 public:
  explicit Stack(bool decoder) : LayerStack(decoder ? Place::decoder : Place::encoder) {}
  void visit(Visitor&) override {}

  // Which of eight layers each of so many steps leaves out.
  std::vector<bool> left_out(uint64_t seed, uint64_t steps) const {
    std::vector<bool> found;
    for (uint64_t step = 0; step < steps; ++step) {
      const DropoutScope scope({.seed = seed, .step = step});
      for (int64_t layer = 0; layer < 8; ++layer) found.push_back(leaves_out(layer));
    }
    return found;
  }
  using LayerStack::leaves_out;
};

struct Stacks final : Module {
  Stack encoder{false}, decoder{true};
  void visit(Visitor& v) override {
    v("encoder", encoder);
    v("decoder", decoder);
  }
};

TEST(LayerDropout, LeavesOutAShareOfTheLayers) {
  Stacks two;
  set_layer_dropout(two, 0.25);
  const std::vector<bool> found = two.encoder.left_out(3, 500);
  EXPECT_NEAR(static_cast<double>(std::count(found.begin(), found.end(), true)), 1000, 100);
  for (int64_t layer = 0; layer < 8; ++layer) EXPECT_FALSE(two.encoder.leaves_out(layer)) << "outside of training";
}

TEST(LayerDropout, IsAFunctionOfSeedStepStackAndLayer) {
  Stacks two;
  set_layer_dropout(two, 0.25);
  const std::vector<bool> found = two.encoder.left_out(3, 10);
  EXPECT_EQ(found, two.encoder.left_out(3, 10));
  EXPECT_NE(found, two.encoder.left_out(4, 10));
  EXPECT_NE(found, two.decoder.left_out(3, 10));
  EXPECT_NE(std::vector(found.begin(), found.begin() + 40), std::vector(found.begin() + 40, found.end()));
}

TEST(LayerDropout, IsOffAtFirst) {
  const Stack stack(false);
  const std::vector<bool> found = stack.left_out(3, 10);
  EXPECT_EQ(std::count(found.begin(), found.end(), true), 0);
}

// Layers that share their parameters have masks of their own at each use there too.
TEST(LayerDropout, APassWithAttentionWeightsHasTheSameStates) {
  TransformerConfig config;
  config.source_vocab = config.target_vocab = 20;
  config.d_model = 32;
  config.heads = 4;
  config.layers = 2;
  config.d_ff = 48;
  config.share_layers = true;
  config.dropout = config.attention_dropout = config.activation_dropout = 0.3;
  const auto model = build_transformer(config, 3);
  const PackedTokens text = pack_tokens(std::vector<int32_t>{4, 5, 6, 7, 8, 9, 10, 11, 12}, {0, 5, 9});
  const NoGrad no_grad;
  int64_t left_out = 0, all = 0;
  const auto count = [&](const std::vector<Tensor>& weights) {
    EXPECT_EQ(weights.size(), 2u);
    for (const Tensor& of_layer : weights) left_out += of_layer.defined() ? 0 : 1, ++all;
  };
  for (const double probability : {0.0, 0.4}) {
    set_layer_dropout(*model, probability);
    for (uint64_t step = 0; step < 10; ++step) {
      const DropoutScope scope({.seed = 1, .step = step});
      const Tensor memory = model->encode(text);
      const EncoderOutput encoded = model->encode_with_weights(text);
      EXPECT_TRUE(same_bits(encoded.states, memory)) << step;
      const DecoderOutput decoded = model->decode_with_weights(memory, text.sequences, text);
      EXPECT_TRUE(same_bits(decoded.states, model->decode(memory, text.sequences, text))) << step;
      count(encoded.weights);
      count(decoded.self_weights);
      count(decoded.cross_weights);
    }
    EXPECT_EQ(left_out > 0, probability > 0);
  }
  EXPECT_LT(left_out, all);
}

TEST(LayerDropout, RefusesWhatIsNoProbability) {
  Stacks two;
  EXPECT_EQ(message_of<ConfigError>([&] { set_layer_dropout(two, 1); }),
            "layer_dropout = 1: needs a number from 0 to below 1");
}

}  // namespace
}  // namespace attune

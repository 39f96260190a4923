#include "attune/nn/attention/multi_head_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "attune/autograd/graph.h"
#include "attune/nn/attention/multi_head_latent_attention.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

Tensor parameter(Module& module, const std::string& name) {
  const auto all = named_parameters(module);
  return *std::ranges::find(all, name, &NamedParameter::name)->tensor;
}

bool are_adjacent(Module& module, const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  for (const std::string& name : names) tensors.push_back(parameter(module, name));
  return Tensor::joined(tensors).defined();
}

const std::vector<std::string> kWeights = {"w_q.weight", "w_k.weight", "w_v.weight"};
const std::vector<std::string> kBiases = {"w_q.bias", "w_k.bias", "w_v.bias"};

struct Result {
  Tensor y, dx, d_memory;
  std::vector<Tensor> gradients;
};

// What the attention makes of x (and of a memory, unless that is x), and all its gradients.
Result run(Attention& attention, bool cross, ProductPrecision precision = ProductPrecision::float32) {
  const ProductPrecisionScope scope(precision);
  const Sequences lengths = Sequences::from_lengths({4, 7});
  const DType dtype = named_parameters(attention).front().tensor->dtype();
  Tensor x = normal({11, 16}, {.seed = 1}).to(dtype), memory = normal({11, 16}, {.seed = 2}).to(dtype);
  require_gradient(x);
  require_gradient(memory);
  clear_gradients(attention);
  const Tensor y = attention(x, cross ? memory : x, {.queries = lengths, .keys = lengths, .causal = !cross});
  const Tensor y_32 = y.dtype() == DType::bf16 ? to_float32(y) : y.detach();
  backward(y, normal({11, 16}, {.seed = 3}).to(dtype));
  Result result{.y = y_32, .dx = gradient(x), .d_memory = gradient(memory), .gradients = {}};
  for (const auto& [name, p] : named_parameters(attention))
    if (name != "w_k.bias") result.gradients.push_back(gradient(*p));  // which is 0 but for rounding: softmax shifts
  return result;
}

double difference(const Result& found, const Result& expected) {
  double most = larger_error(relative_error(found.y, expected.y), relative_error(found.dx, expected.dx));
  EXPECT_EQ(found.d_memory.defined(), expected.d_memory.defined());
  if (expected.d_memory.defined()) most = larger_error(most, relative_error(found.d_memory, expected.d_memory));
  for (size_t i = 0; i < expected.gradients.size(); ++i)
    most = larger_error(most, relative_error(found.gradients[i], expected.gradients[i]));
  return most;
}

MultiHeadAttentionConfig config_of(bool rotary) {
  MultiHeadAttentionConfig config{.d_model = 16, .heads = 4, .kv_heads = 2};
  if (rotary) config.positions.rotary = RotaryOptions{};
  return config;
}

TEST(MultiHeadAttention, WeightsOfOneProductStayAdjacent) {
  MultiHeadAttention attention(config_of(false));
  require_gradients(attention);
  EXPECT_TRUE(are_adjacent(attention, kWeights));
  EXPECT_TRUE(are_adjacent(attention, kBiases));
  MultiHeadLatentAttention latent({.d_model = 16, .heads = 4, .latent_dim = 8});
  require_gradients(latent);
  EXPECT_TRUE(are_adjacent(latent, {"w_k_decompress.weight", "w_v_decompress.weight"}));
}

// convert_parameters() gives each parameter memory of its own: then they are copied together, with the same result.
TEST(MultiHeadAttention, WeightsThatAreNotAdjacentGiveTheSame) {
  for (const bool rotary : {false, true}) {
    MultiHeadAttention attention(config_of(rotary));
    initialize_parameters(attention, 5);
    require_gradients(attention);
    const Result self = run(attention, false), bfloat16 = run(attention, false, ProductPrecision::bfloat16);
    const Result cross = run(attention, true);
    convert_parameters(attention, DType::f64);
    require_gradients(attention);
    EXPECT_FALSE(are_adjacent(attention, kWeights));
    EXPECT_LT(difference(self, run(attention, false)), 1e-5);
    EXPECT_LT(difference(cross, run(attention, true)), 1e-5);
    EXPECT_LT(difference(bfloat16, run(attention, false)), 0.05);
    convert_parameters(attention, DType::f32);
    require_gradients(attention);
    EXPECT_EQ(difference(run(attention, false), self), 0);
    EXPECT_EQ(difference(run(attention, false, ProductPrecision::bfloat16), bfloat16), 0);
  }
}

// Queries of x and keys of x are one product; of a copy of x they are two.
TEST(MultiHeadAttention, OneProductIsThreeProducts) {
  for (const bool rotary : {false, true}) {
    MultiHeadAttention attention(config_of(rotary));
    initialize_parameters(attention, 5);
    const Sequences lengths = Sequences::from_lengths({4, 7});
    const Tensor x = normal({11, 16}, {.dtype = DType::f32, .seed = 1});
    const AttentionMask mask{.queries = lengths, .keys = lengths, .causal = true};
    EXPECT_LT(relative_error(attention(x, x, mask), attention(x, x.clone(), mask)), 1e-6);
  }
}

TEST(MultiHeadAttention, AGuidedHeadNeedsEveryKeyInSight) {
  MultiHeadAttention attention(config_of(false));
  initialize_parameters(attention, 5);
  const Sequences lengths = Sequences::from_lengths({4, 7});
  const Tensor x = normal({11, 16}, {.dtype = DType::f32, .seed = 1});
  const Tensor memory = normal({11, 16}, {.dtype = DType::f32, .seed = 2});
  AttentionGuide guide{.links = {.offsets = std::vector<int32_t>(12, 1), .keys = {3}}};
  guide.links.offsets[0] = 0;
  AttentionMask mask{.queries = lengths, .keys = lengths, .guide = &guide};
  EXPECT_GT(attention.forward(x, memory, mask).guided_loss.item(), 0);
  EXPECT_TRUE(same_bits(attention.forward(x, memory, mask).states,
                        attention(x, memory, {.queries = lengths, .keys = lengths})));
  EXPECT_FALSE(attention.forward(x, memory, {.queries = lengths, .keys = lengths}).guided_loss.defined());
  mask.causal = true;
  EXPECT_THROW(attention.forward(x, memory, mask), ConfigError);
}

}  // namespace
}  // namespace attune

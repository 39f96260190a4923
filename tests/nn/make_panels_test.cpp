#include "attune/nn/make_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/feed_forward.h"
#include "attune/ops/precision.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

std::vector<TransformerConfig> configs() {
  std::vector<TransformerConfig> all = small_configs();
  TransformerConfig c = small_config(MultiHead{.kv_heads = 2}, NormPlacement::pre);
  c.positions = RotaryOptions{};
  c.activation = FeedForwardActivation::swiglu;
  c.share_embeddings = c.share_projection = true;
  all.push_back(c);
  c = small_config(MultiHeadLatent{.query_latent_dim = 8, .rotary_dim = 4}, NormPlacement::pre);
  c.positions = RotaryOptions{};
  c.cross_attention = MultiHead{};
  all.push_back(c);
  return all;
}

struct Outputs {
  Tensor memory, decoded, logits, selected;
};

Outputs outputs_of(const Transformer& model) {
  const NoGrad no_grad;
  const Sequences source = Sequences::from_lengths({5, 1, 9}), target = Sequences::from_lengths({3, 4, 1});
  Outputs outputs;
  outputs.memory = model.encode({uniform_ids(source.total(), 40, 1), source});
  outputs.decoded = model.decode(outputs.memory, source, {uniform_ids(target.total(), 40, 2), target});
  KvCache cache = model.start(outputs.memory, source);
  for (const int32_t token : {1, 2, 3}) outputs.logits = model.step(std::vector<int32_t>{token, 5, 6}, cache);
  const std::vector<int32_t> some = {0, 7, 39}, others = {17};
  const std::vector<std::span<const int32_t>> columns = {some, others, some};
  outputs.selected = model.project(outputs.decoded.rows(0, 3), columns).reshape({-1}).rows(0, 3);
  return outputs;
}

void expect_near(const Outputs& found, const Outputs& expected, double most, const std::string& what) {
  const auto error = [](const Tensor& a, const Tensor& b) {
    return relative_error(a.to(DType::f64), b.to(DType::f64));
  };
  EXPECT_LT(error(found.memory, expected.memory), most) << what;
  EXPECT_LT(error(found.decoded, expected.decoded), most) << what;
  EXPECT_LT(error(found.logits, expected.logits), most) << what;
  EXPECT_LT(error(found.selected, expected.selected), most) << what;
}

TEST(MakePanels, ResultsAreTheSameToRounding) {
  for (const TransformerConfig& c : configs()) {
    const auto model = random_model(c);
    const Outputs expected = outputs_of(*model);
    const std::vector<NamedParameter> before = named_parameters(*model);
    const int64_t count = parameter_count(*model);
    make_panels(*model, WeightFormat::float32);
    expect_near(outputs_of(*model), expected, 1e-5, name_of(c));
    make_panels(*model, WeightFormat::int8);
    expect_near(outputs_of(*model), expected, 0.1, name_of(c));
    const std::vector<NamedParameter> after = named_parameters(*model);
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].name, before[i].name);
    EXPECT_EQ(parameter_count(*model), count);
    drop_panels(*model);
    EXPECT_TRUE(same_bits(outputs_of(*model).logits, expected.logits)) << name_of(c);
  }
}

TEST(MakePanels, GradientsAreThoseOfTheParameters) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  require_gradients(*model);
  const Sequences text = Sequences::from_lengths({4, 6});
  const PackedTokens source{uniform_ids(10, 40, 1), text}, target{uniform_ids(10, 40, 2), text};
  const auto gradients = [&] {
    clear_gradients(*model);
    backward(model->loss(source, target, uniform_ids(10, 40, 3), {}).loss);
    std::vector<Tensor> found;
    for (const NamedParameter& p : named_parameters(*model)) found.push_back(gradient(*p.tensor));
    return found;
  };
  const std::vector<Tensor> expected = gradients();
  make_panels(*model, WeightFormat::int8);
  const std::vector<Tensor> found = gradients();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i]));
}

// Whoever writes a parameter's tensor drops its panels.
TEST(MakePanels, AreDroppedWhereParametersAreReplaced) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  const Tensor expected = outputs_of(*model).logits;
  make_panels(*model, WeightFormat::int4);
  require_gradients(*model);
  EXPECT_TRUE(same_bits(outputs_of(*model).logits, expected));
}

TEST(CopyForInference, HasTheResultsOfPanelsAndNothingInCommon) {
  for (const TransformerConfig& c : configs()) {
    const auto model = random_model(c);
    const auto copy = inference_copy(*model);
    make_panels(*model, WeightFormat::float32);
    const Outputs expected = outputs_of(*model), before = outputs_of(*copy);
    EXPECT_TRUE(same_bits(before.memory, expected.memory)) << name_of(c);
    EXPECT_TRUE(same_bits(before.decoded, expected.decoded)) << name_of(c);
    EXPECT_TRUE(same_bits(before.logits, expected.logits)) << name_of(c);
    EXPECT_TRUE(same_bits(before.selected, expected.selected)) << name_of(c);
    for (const NamedParameter& p : named_parameters(*model))
      for (float& value : p.tensor->values<float>()) value *= 2;
    EXPECT_TRUE(same_bits(outputs_of(*copy).logits, expected.logits)) << name_of(c);
  }
}

TEST(CopyForInference, OfACopySharesItsPanels) {
  const auto model = random_model(configs().back());
  const auto copy = inference_copy(*model, WeightFormat::int8), second = inference_copy(*copy);
  EXPECT_TRUE(same_bits(outputs_of(*second).logits, outputs_of(*copy).logits));
}

TEST(CopyForInference, RefusesAnotherStructure) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  FeedForward other({.d_model = 8, .d_ff = 8});
  EXPECT_THROW(copy_for_inference(*model, other), ShapeError);
}

TEST(CopyForInference, RecordsNothingAndSaysSo) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  const auto copy = inference_copy(*model);
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  EXPECT_THAT(message_of<ShapeError>([&] { outputs_of(*copy); }), ::testing::HasSubstr("as panels alone"));
}

// Matrices that are stored in bfloat16 are as good as their values in float32, to the bit, and are in memory once.
TEST(MakePanels, OfBfloat16HaveTheBitsOfTheirValuesInFloat32) {
  for (const TransformerConfig& c : configs()) {
    const auto kinds = {c.encoder_attention, c.decoder_attention, c.cross_attention};
    if (std::ranges::any_of(kinds,
                            [](const AttentionKind& kind) { return std::holds_alternative<MultiHeadLatent>(kind); }))
      continue;  // reads elements of its matrices
    const auto narrow = random_model(c), wide = random_model(c);
    const auto rounded = [](const NamedParameter& p) {
      return p.tensor->rank() == 2 ? to_bfloat16(*p.tensor) : Tensor{};
    };
    replace_parameters(*narrow, rounded);
    replace_parameters(*wide, [&](const NamedParameter& p) {
      const Tensor tensor = rounded(p);
      return tensor.defined() ? to_float32(tensor) : tensor;
    });
    ensure_panels(*narrow);
    ensure_panels(*wide);
    keep_panels_alone(*narrow);
    const Outputs expected = outputs_of(*wide);
    for (const NamedParameter& p : named_parameters(*narrow))
      EXPECT_TRUE(p.tensor->rank() == 1 || p.name.find("embedding") != std::string::npos) << p.name;
    const Outputs found = outputs_of(*narrow);
    EXPECT_TRUE(same_bits(found.memory, expected.memory)) << name_of(c);
    EXPECT_TRUE(same_bits(found.decoded, expected.decoded)) << name_of(c);
    EXPECT_TRUE(same_bits(found.logits, expected.logits)) << name_of(c);
    EXPECT_TRUE(same_bits(found.selected, expected.selected)) << name_of(c);
    const auto copy = inference_copy(*narrow);
    EXPECT_TRUE(same_bits(outputs_of(*copy).logits, expected.logits)) << name_of(c);
  }
}

// A step's rows do not depend on how many there are, to the bit.
TEST(MakePanels, StepsDoNotDependOnTheBatch) {
  for (const WeightFormat format :
       {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8, WeightFormat::int4}) {
    const auto model = random_model(small_config(MultiHead{}, NormPlacement::post));
    make_panels(*model, format);
    const NoGrad no_grad;
    const Sequences all = Sequences::from_lengths({5, 1, 9}), last = Sequences::from_lengths({9});
    const Indices ids = uniform_ids(15, 40, 1);
    KvCache together = model->start(model->encode({ids, all}), all);
    KvCache alone = model->start(model->encode({ids.slice(6, 15), last}), last);
    for (const int32_t token : {1, 2, 3}) {
      const Tensor a = model->step(std::vector<int32_t>{4, 5, token}, together);
      const Tensor b = model->step(std::vector<int32_t>{token}, alone);
      EXPECT_TRUE(same_bits(a.rows(2, 3), b)) << enum_name(format);
    }
  }
}

}  // namespace
}  // namespace attune

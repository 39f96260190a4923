#include "attune/nn/make_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/feed_forward.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/buffer.h"
#include "attune/tensor/host_view.h"
#include "tests/inference/random_model.h"
#include "tests/support/devices.h"
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

// For devices that read tensors: a product of several matrices then needs no copy of them.
TEST(CopyForInference, KeepsWhatIsAdjacent) {
  for (const TransformerConfig& c : configs()) {
    const auto model = random_model(c);
    const auto copy = inference_copy(*model, {}, Plain{});
    const auto runs_of = [](Module& module) {
      std::vector<std::vector<std::string>> names;
      for (const auto& run : adjacent_runs(named_parameters(module))) {
        names.emplace_back();
        for (const NamedParameter& p : run) names.back().push_back(p.name);
      }
      return names;
    };
    EXPECT_EQ(runs_of(*copy), runs_of(*model)) << name_of(c);
    EXPECT_TRUE(same_bits(outputs_of(*copy).logits, outputs_of(*model).logits)) << name_of(c);
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

// Checks that a module has its matrices in bfloat16 and all else in float32.
class MatrixTypes final : public Visitor {
 public:
  explicit MatrixTypes(Module& module) {
    module.visit(*this);
    for (const auto& [path, parameter] : found_) {
      const bool multiplied = products_.contains(parameter->tensor.address());
      EXPECT_EQ(parameter->tensor.dtype(), multiplied ? DType::bf16 : DType::f32) << path;
      EXPECT_EQ(parameter->panels, nullptr) << path;
    }
  }

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (parameter.use == ParameterUse::product) products_.insert(parameter.tensor.address());
    found_.emplace_back(path, &parameter);
  }

 private:
  std::set<const void*> products_;
  std::vector<std::pair<std::string, const Parameter*>> found_;
};

void expect_same_outputs(const Outputs& found, const Outputs& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(found.memory.to(Cpu{}), expected.memory.to(Cpu{}))) << what;
  EXPECT_TRUE(same_bits(found.decoded.to(Cpu{}), expected.decoded.to(Cpu{}))) << what;
  EXPECT_TRUE(same_bits(found.logits.to(Cpu{}), expected.logits.to(Cpu{}))) << what;
}

// Matrices that are rounded once give the bits of those that products round. Lookups in a table that is a product's
// matrix too read the rounded numbers.
TEST(RoundMatrices, HaveTheBitsOfMatricesThatProductsRound) {
  for (const TransformerConfig& c : configs()) {
    for (const Device& device : devices_under_test()) {
      const std::string what = device.text() + " " + name_of(c);
      const auto moved_first = random_model(c), narrow = random_model(c), wide = random_model(c);
      if (c.share_projection)  // and share_embeddings: one table
        replace_parameters(*wide, [](const NamedParameter& p) {
          return p.name == "source_embedding.weight" ? to_float32(to_bfloat16(*p.tensor)) : Tensor{};
        });
      round_matrices(*narrow);
      for (Module* module : {moved_first.get(), narrow.get(), wide.get()}) move_parameters(*module, device);
      round_matrices(*moved_first);
      const MatrixTypes of_moved(*moved_first), of_narrow(*narrow);
      const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
      const Outputs expected = outputs_of(*wide), found = outputs_of(*narrow);
      expect_same_outputs(found, expected, what);
      expect_same_outputs(outputs_of(*moved_first), expected, what);
      // Single columns are computed from the same rounded numbers as all of them.
      const NoGrad no_grad;
      const std::vector<float> logits = host_values<float>(narrow->project(found.decoded.rows(0, 1)));
      const std::vector<float> selected = host_values<float>(found.selected);
      const float largest = std::abs(std::ranges::max(logits, {}, [](float v) { return std::abs(v); }));
      const std::vector<size_t> columns = {0, 7, 39};
      for (size_t j = 0; j < columns.size(); ++j) EXPECT_NEAR(selected[j], logits[columns[j]], 1e-4 * largest) << what;
    }
  }
}

// Products in float32 widen them, so that a model may be used with either precision.
TEST(RoundMatrices, HaveTheBitsOfTheirNumbersInFloat32) {
  for (const TransformerConfig& c : configs()) {
    for (const Device& device : devices_under_test()) {
      const auto narrow = random_model(c), wide = random_model(c);
      for (Module* module : {narrow.get(), wide.get()}) {
        round_matrices(*module);
        move_parameters(*module, device);
      }
      replace_parameters(*wide, [](const NamedParameter& p) { return to_float32(*p.tensor); });
      const Outputs found = outputs_of(*narrow), expected = outputs_of(*wide);
      expect_same_outputs(found, expected, name_of(c));
      EXPECT_TRUE(same_bits(found.selected.to(Cpu{}), expected.selected.to(Cpu{}))) << name_of(c);
    }
  }
}

TEST(RoundMatrices, KeepWhatIsAdjacentAndHalveTheMemory) {
  TransformerConfig c = small_config(MultiHead{}, NormPlacement::pre, 16);
  c.d_model = 128;
  c.d_ff = 512;
  const auto model = random_model(c);
  const auto parameter_bytes = [&] {
    size_t bytes = 0;
    for (const NamedParameter& p : named_parameters(*model)) bytes += p.tensor->bytes();
    return static_cast<double>(bytes);
  };
  const double wide = parameter_bytes();
  const int64_t before = allocator_statistics().bytes_in_use;
  round_matrices(*model);
  EXPECT_LT(parameter_bytes(), 0.55 * wide);
  EXPECT_GT(static_cast<double>(before - allocator_statistics().bytes_in_use), 0.4 * wide)
      << "nothing is kept beside; blocks are rounded up";
  size_t adjacent = 0;
  for (const auto& run : adjacent_runs(named_parameters(*model)))
    if (run.size() > 1 && run.front().tensor->dtype() == DType::bf16) adjacent += run.size();
  EXPECT_EQ(adjacent, 2u * 3 + 2 * (3 + 3)) << "queries, keys and values of each layer's attentions";
}

TEST(RoundMatrices, AreNotTrained) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  round_matrices(*model);
  EXPECT_THAT(message_of<ShapeError>([&] { require_gradients(*model); }),
              ::testing::HasSubstr("is bfloat16, for inference alone; training needs float32"));
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

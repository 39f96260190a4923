#include "attune/nn/adapters/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "attune/autograd/graph.h"
#include "attune/models/build.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/projection.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/buffer.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr RandomOptions f64(uint64_t seed) {
  return {.dtype = DType::f64, .seed = seed};
}

// A projection of these tensors, with an adapter where there is an A.
Projection projection_of(const Tensor& weight, const Tensor& bias, const Tensor& a = {}, const Tensor& b = {}) {
  Projection p{.weight = {.tensor = weight, .use = ParameterUse::product}, .bias = {.tensor = bias}};
  if (a.defined()) p.adapter->set(a, b, 0.7);
  return p;
}

TEST(Adapters, GradientOfOneProjection) {
  const std::vector<Tensor> inputs = {normal({3, 5}, f64(1)), normal({4, 5}, f64(2)), normal({4}, f64(3)),
                                      normal({2, 5}, f64(4)), normal({4, 2}, f64(5))};
  const auto f = [](const std::vector<Tensor>& t) {
    return project(t[0], projection_of(t[1], t[2], t[3], t[4]), {.activation = Activation::gelu});
  };
  EXPECT_LT(gradient_error(f, inputs), 1e-7);
}

TEST(Adapters, GradientOfProjectionsSideBySide) {
  // The first and the last of three have adapters, of different ranks.
  const std::vector<Tensor> inputs = {normal({3, 4}, f64(1)), normal({2, 4}, f64(2)), normal({3, 4}, f64(3)),
                                      normal({2, 4}, f64(4)), normal({1, 4}, f64(5)), normal({2, 1}, f64(6)),
                                      normal({2, 4}, f64(7)), normal({2, 2}, f64(8))};
  const auto fused = [](const std::vector<Tensor>& t) {
    const Projection q = projection_of(t[1], {}, t[4], t[5]), k = projection_of(t[2], {}),
                     v = projection_of(t[3], {}, t[6], t[7]);
    return project_fused(t[0], {&q, &k, &v});
  };
  EXPECT_LT(gradient_error(fused, inputs), 1e-7);
  const auto& t = inputs;
  const Projection q = projection_of(t[1], {}, t[4], t[5]), k = projection_of(t[2], {}),
                   v = projection_of(t[3], {}, t[6], t[7]);
  const auto each = project_each(t[0], {&q, &k, &v});
  const Tensor together = project_fused(t[0], {&q, &k, &v});
  const HostView all(together), of_q(each[0]), of_k(each[1]), of_v(each[2]);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(all.as<double>()[r * 7], of_q.as<double>()[r * 2], 1e-12);
    EXPECT_NEAR(all.as<double>()[r * 7 + 2], of_k.as<double>()[r * 3], 1e-12);
    EXPECT_NEAR(all.as<double>()[r * 7 + 5], of_v.as<double>()[r * 2], 1e-12);
  }
}

TEST(Adapters, GradientOfSegments) {
  const std::vector<int64_t> offsets = {0, 2, 3, 5};
  const std::vector<Tensor> inputs = {normal({5, 3}, f64(1)), normal({2, 3}, f64(2)), normal({2, 3}, f64(3)),
                                      normal({2, 3}, f64(4)), normal({1, 3}, f64(5)), normal({2, 1}, f64(6)),
                                      normal({1, 3}, f64(7)), normal({2, 1}, f64(8))};
  const auto f = [&](const std::vector<Tensor>& t) {
    const Projection first = projection_of(t[1], {}, t[4], t[5]), second = projection_of(t[2], {}),
                     third = projection_of(t[3], {}, t[6], t[7]);
    const Projection* const all[] = {&first, &second, &third};
    return project_segments(t[0], offsets, all, false);
  };
  EXPECT_LT(gradient_error(f, inputs), 1e-7);
}

// W + s B A
Tensor with_product(const Tensor& w, const Tensor& a, const Tensor& b, double scale) {
  Adapter adapter;
  adapter.set(a, b, scale);
  return with_adapter({.tensor = w}, adapter).tensor;
}

TransformerConfig small_encoder() {
  return {.architecture = Architecture::encoder_classifier,
          .vocab = 11,
          .d_model = 16,
          .heads = 2,
          .layers = 2,
          .d_ff = 32,
          .labels = {"a", "b"}};
}

Tensor logits_of(const EncoderClassifier& model) {
  const NoGrad no_grad;
  return model(pack_tokens(std::vector<int32_t>{1, 5, 7, 2, 9, 3}, {0, 4, 6}));
}

// Adapters that add something: B is not zero.
void fill_adapters(Module& model) {
  uint64_t stream = 0;
  for (const AdapterSlot& slot : adapter_slots(model))
    if (slot.adapter->there()) initialize_normal(slot.adapter->b(), 0.5, 7, stream++);
}

TEST(Adapters, NewOnesAddNothingAndMergedOnesTheSame) {
  const auto model = build_encoder_classifier(small_encoder(), 3);
  const Tensor before = logits_of(*model);
  const int64_t parameters = parameter_count(*model);
  add_adapters(*model, {.rank = 2, .targets = {"w_q", "encoder.layers.1.*.w_v", "linear_1"}}, 5);
  EXPECT_EQ(parameter_count(*model), parameters + 2 * (2 * 32) + 2 * 32 + 2 * (2 * 48));
  EXPECT_LT(relative_error(logits_of(*model), before), 1e-6);
  fill_adapters(*model);
  const Tensor adapted = logits_of(*model);
  EXPECT_GT(relative_error(adapted, before), 1e-2);
  const auto copy = inference_copy(*model);
  EXPECT_LT(relative_error(logits_of(*copy), adapted), 1e-5) << "a copy for inference has them in its weights";
  merge_adapters(*model);
  EXPECT_EQ(parameter_count(*model), parameters);
  EXPECT_LT(relative_error(logits_of(*model), adapted), 1e-5);
}

// How many matrices follow another one in memory as rows of one tensor.
int64_t adjacent_matrices(Module& module) {
  int64_t count = 0;
  for (const auto& run : adjacent_runs(named_parameters(module)))
    if (run.front().tensor->rank() == 2) count += std::ssize(run) - 1;
  return count;
}

TEST(Adapters, MergedOnesAreWrittenOverWhatNobodyElseHolds) {
  for (const bool held : {false, true}) {
    const auto model = build_encoder_classifier(small_encoder(), 3);
    const int64_t adjacent = adjacent_matrices(*model);
    EXPECT_GT(adjacent, 0);
    add_adapters(*model, {.rank = 2, .targets = {"w_q", "w_v", "linear_1"}}, 5);
    fill_adapters(*model);
    const Tensor adapted = logits_of(*model);
    std::vector<Tensor> others, before;
    for (const AdapterSlot& slot : adapter_slots(*model)) {
      if (!held) continue;
      others.push_back(slot.weight->tensor);
      before.push_back(slot.weight->tensor.clone());
    }
    merge_adapters(*model);
    EXPECT_LT(relative_error(logits_of(*model), adapted), 1e-5);
    if (!held) {
      EXPECT_EQ(adjacent_matrices(*model), adjacent) << "queries, keys and values stay one product";
    }
    for (size_t i = 0; i < others.size(); ++i) EXPECT_TRUE(same_bits(others[i], before[i])) << i;
  }
}

// Gives the matrices of a model in int8 to training; `widened`: the same numbers as float32 tensors.
void quantise(Module& model, bool widened) {
  class Quantising final : public Visitor {
   public:
    explicit Quantising(bool w) : widened_(w) {}

   protected:
    void on_parameter(const std::string&, Parameter& p) override {
      if (p.use != ParameterUse::product) return;
      const auto panels = std::make_shared<const PanelWeight>(PanelWeight::lay_out(p.tensor, WeightFormat::int8));
      p.tensor = widened_ ? panels->to_matrix() : Tensor{};
      if (!widened_) p.quantised = panels;
    }

   private:
    bool widened_;
  };
  Quantising quantising(widened);
  model.visit(quantising);
}

// The loss of a recorded pass with new adapters over int8 weights, and the gradients of the adapters.
std::vector<Tensor> adapter_gradients(bool widened, bool checkpointing) {
  TransformerConfig config = small_encoder();
  config.activation = FeedForwardActivation::gelu;
  const auto model = build_encoder_classifier(config, 3);
  quantise(*model, widened);
  add_adapters(*model, {.rank = 2, .targets = {"all", "head"}}, 5);
  fill_adapters(*model);
  for (const AdapterSlot& slot : adapter_slots(*model)) slot.weight->trained = false;
  require_gradients(*model);
  set_activation_checkpointing(*model, checkpointing);
  const Tensor logits = (*model)(pack_tokens(std::vector<int32_t>{1, 5, 7, 2, 9, 3}, {0, 4, 6}));
  backward(logits, normal({2, 2}, {.dtype = DType::f32, .seed = 6}));
  std::vector<Tensor> found = {logits.detach()};
  for (const AdapterSlot& slot : adapter_slots(*model)) {
    found.push_back(gradient(slot.adapter->a()));
    found.push_back(gradient(slot.adapter->b()));
  }
  return found;
}

// A scope of bfloat16 keeps copies of parameters until it ends, but not of what is made for one product.
TEST(Adapters, WhatIsMadeForOneProductIsNotKeptInBfloat16) {
  const RandomOptions f32{.dtype = DType::f32, .seed = 2};
  Projection int8 = projection_of({}, {});
  int8.weight.quantised =
      std::make_shared<const PanelWeight>(PanelWeight::lay_out(normal({1024, 512}, f32), WeightFormat::int8));
  const Projection q = projection_of(normal({1024, 512}, f32), {}, normal({64, 512}, f32), normal({1024, 64}, f32)),
                   v = projection_of(normal({1024, 512}, f32), {}, normal({64, 512}, f32), normal({1024, 64}, f32));
  const Tensor x = normal({4, 512}, f32);
  const Indices labels = Indices{1, 2, 3, 4};
  const ProductPrecisionScope precision(ProductPrecision::bfloat16);
  const auto both = [&] {
    static_cast<void>(projection_loss(x, int8, labels, {}));
    static_cast<void>(project_fused(x, {&q, &v}));
  };
  both();
  const int64_t before = allocator_statistics().bytes_in_use;
  for (int i = 0; i < 3; ++i) both();
  EXPECT_LT(allocator_statistics().bytes_in_use - before, 100'000);
}

TEST(Adapters, GradientsOverInt8WeightsAreThoseOverTheWidenedOnesBitForBit) {
  const auto expected = adapter_gradients(true, false);
  for (const bool checkpointing : {false, true}) {
    const auto found = adapter_gradients(false, checkpointing);
    ASSERT_EQ(found.size(), 1 + 2 * 13);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
  }
}

TEST(Adapters, Int8WeightsAreMergedAndCopiedAsTheyAreWidened) {
  const auto quantised = build_encoder_classifier(small_encoder(), 3),
             wide = build_encoder_classifier(small_encoder(), 3);
  const int64_t parameters = parameter_count(*quantised);
  for (EncoderClassifier* const model : {quantised.get(), wide.get()}) {
    quantise(*model, model == wide.get());
    add_adapters(*model, {.rank = 2}, 5);
    fill_adapters(*model);
  }
  EXPECT_EQ(parameter_count(*quantised), parameters + 4 * 2 * 32) << "quantised matrices count";
  EXPECT_TRUE(same_bits(logits_of(*quantised), logits_of(*wide))) << "without a tape too";
  EXPECT_TRUE(same_bits(logits_of(*inference_copy(*quantised)), logits_of(*inference_copy(*wide))));
  const auto stored = adapted_parameters(*quantised), expected = adapted_parameters(*wide);
  ASSERT_EQ(stored.size(), expected.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(stored[i].name, expected[i].name);
    const auto values = [](const AdaptedParameter& p) { return p.later ? p.later->make() : p.tensor; };
    EXPECT_TRUE(same_bits(values(stored[i]), values(expected[i]))) << stored[i].name;
  }
}

// The widened matrices and those with adapters are made one after the other while panels are made of them.
TEST(Adapters, ACopyForInferenceTakesTheMemoryOfItsPanels) {
  TransformerConfig config = small_encoder();
  config.d_model = 128;
  config.d_ff = 256;
  config.layers = 16;
  for (const bool quantised : {true, false}) {
    const auto model = build_encoder_classifier(config, 3);
    if (quantised) quantise(*model, false);
    add_adapters(*model, {.rank = 2, .targets = {"all"}}, 5);
    const auto copy = build_without_values(config, build_encoder_classifier);
    const int64_t before = allocator_statistics().bytes_in_use;
    reset_peak_bytes();
    copy_for_inference(*model, *copy);
    const double most = static_cast<double>(allocator_statistics().peak_bytes_in_use - before);
    EXPECT_LT(most, 1.5 * 4 * static_cast<double>(parameter_count(*copy))) << "quantised: " << quantised;
  }
}

// Two adapters of different ranks; rows choose the first, the second, one that this projection does not have, and none.
TEST(Adapters, RowsChooseTheirs) {
  const auto f32 = [](const Shape& shape, uint64_t seed) { return normal(shape, {.dtype = DType::f32, .seed = seed}); };
  const Tensor x = f32({6, 24}, 1), w = f32({20, 24}, 2);
  struct Choice {
    Tensor a, b;
    double scale;
  };
  const std::vector<Choice> choices = {{f32({2, 24}, 3), f32({20, 2}, 4), 0.5}, {f32({5, 24}, 5), f32({20, 5}, 6), 2}};
  Projection p = projection_of(w, {});
  p.weight.panels = std::make_shared<const PanelWeight>(PanelWeight::lay_out(w, WeightFormat::float32));
  const NoGrad no_grad;
  const Tensor plain = project(x, p);
  for (size_t i = 0; i < choices.size(); ++i)
    p.adapter->add_choice(static_cast<int32_t>(i), choices[i].a, choices[i].b, choices[i].scale);
  EXPECT_TRUE(same_bits(project(x, p), plain)) << "nobody chooses";
  const std::vector<int32_t> chosen = {1, kNoAdapter, 0, 1, 7, 0};
  const auto of_rows = [&](const Tensor& rows, std::vector<int32_t> adapters) {
    const AdapterRowsScope scope(std::move(adapters));
    return project(rows, p);
  };
  const Tensor together = of_rows(x, chosen);
  const auto each = [&] {
    const AdapterRowsScope scope(chosen);
    return project_each(x, {&p, &p})[1];
  }();
  for (int64_t r = 0; r < 6; ++r) {
    const int32_t number = chosen[static_cast<size_t>(r)];
    const Tensor row = together.rows(r, r + 1);
    EXPECT_TRUE(same_bits(row, of_rows(x.rows(r, r + 1), {number}))) << "row " << r << " alone";
    EXPECT_TRUE(same_bits(row, each.rows(r, r + 1)));
    if (number != 0 && number != 1) {
      EXPECT_TRUE(same_bits(row, plain.rows(r, r + 1)));
      continue;
    }
    const auto& [a, b, scale] = choices[static_cast<size_t>(number)];
    EXPECT_LT(relative_error(row, project(x.rows(r, r + 1), projection_of(with_product(w, a, b, scale), {}))), 1e-5);
  }
  EXPECT_THAT(message_of<ShapeError>([&] { of_rows(x, {0, 1}); }), HasSubstr("6 rows where 2 have adapters"));
}

TEST(Adapters, TargetsAreChecked) {
  const auto model = build_encoder_classifier(small_encoder(), 3);
  EXPECT_THAT(message_of<ConfigError>([&] { add_adapters(*model, {.rank = 2, .targets = {"q_proj"}}, 1); }),
              HasSubstr("lora.targets: \"q_proj\" names no projection; there are head, linear_1, linear_2, w_k, w_o"));
  EXPECT_THAT(message_of<ConfigError>([&] { add_adapters(*model, {.rank = -1}, 1); }), HasSubstr("rank = -1"));
  TransformerConfig tied{.architecture = Architecture::decoder_lm, .vocab = 11, .d_model = 16, .heads = 2, .layers = 1};
  tied.share_projection = true;
  const auto language_model = build_decoder_lm(tied, 1);
  EXPECT_THAT(
      message_of<ConfigError>([&] { add_adapters(*language_model, {.rank = 2, .targets = {"*projection"}}, 1); }),
      HasSubstr("the weight of projection is read by more than this product"));
  add_adapters(*language_model, {.rank = 2, .targets = {"all"}}, 1);
  int64_t adapters = 0;
  for (const AdapterSlot& slot : adapter_slots(*language_model)) adapters += slot.adapter->there() ? 1 : 0;
  EXPECT_EQ(adapters, 6) << "w_q, w_k, w_v, w_o, linear_1 and linear_2";
}

}  // namespace
}  // namespace attune

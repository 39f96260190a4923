#include "attune/nn/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/models/build.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/projection.h"
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

#include "attune/ops/linear/segment_linear.h"

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/ops/linear/panel_linear.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

const std::vector<int64_t> kSegmentOffsets = {0, 3, 3, 8};  // the second segment is empty

std::vector<Tensor> random_inputs(DType type, int64_t in = 6, int64_t out = 4) {
  std::vector<Tensor> inputs = {normal({8, in}, {.dtype = type, .seed = 1})};
  for (uint64_t e = 0; e < 3; ++e) {
    inputs.push_back(normal({out, in}, {.dtype = type, .seed = 2 + 2 * e}));
    inputs.push_back(normal({out}, {.dtype = type, .seed = 3 + 2 * e}));
  }
  return inputs;
}

Tensor segment_product(const std::vector<Tensor>& t) {
  const std::vector<LinearParameters> parameters = {{t[1], t[2]}, {t[3], t[4]}, {t[5], t[6]}};
  return segment_linear(t[0], kSegmentOffsets, parameters);
}

TEST(SegmentLinear, EachSegmentHasItsOwnParameters) {
  const std::vector<Tensor> t = random_inputs(DType::f64);
  const Tensor y = segment_product(t);
  EXPECT_LT(relative_error(y.rows(0, 3), linear(t[0].rows(0, 3), t[1], t[2])), 1e-12);
  EXPECT_LT(relative_error(y.rows(3, 8), linear(t[0].rows(3, 8), t[5], t[6])), 1e-12);
}

TEST(SegmentLinear, GradientMatchesFiniteDifferences) {
  const std::vector<Tensor> t = random_inputs(DType::f64);
  const auto f = [&](const std::vector<Tensor>& s) {
    return segment_product({s[0], s[1], s[2], t[3], t[4], s[3], s[4]});  // those of the empty segment get none
  };
  EXPECT_LT(gradient_error(f, {t[0], t[1], t[2], t[5], t[6]}), 1e-7);
}

TEST(SegmentLinear, ParametersOfAnEmptySegmentGetNoGradient) {
  std::vector<Tensor> t = random_inputs(DType::f32);
  for (Tensor& x : t) require_gradient(x);
  backward(segment_product(t), Tensor::full({8, 4}, 1));
  EXPECT_TRUE(gradient(t[1]).defined());
  EXPECT_FALSE(gradient(t[3]).defined());
  EXPECT_FALSE(gradient(t[4]).defined());
}

TEST(SegmentLinear, QuantisedIsTheProductWithTheWidenedMatricesBitForBit) {
  const std::vector<Tensor> t = random_inputs(DType::f32, 24, 20);
  std::vector<LinearParameters> quantised, widened;
  for (size_t i = 1; i < t.size(); i += 2) {
    const auto weight = std::make_shared<const PanelWeight>(PanelWeight::lay_out(t[i], WeightFormat::int8));
    quantised.push_back({.weight = {}, .bias = t[i + 1], .quantised = weight});
    widened.push_back({.weight = weight->to_matrix(), .bias = t[i + 1]});
  }
  for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const ProductPrecisionScope scope(precision);
    const auto run = [&](const std::vector<LinearParameters>& parameters) {
      Tensor x = t[0].detach();
      require_gradient(x);
      const Tensor y = segment_linear(x, kSegmentOffsets, parameters);
      backward(y, normal({8, 20}, {.dtype = DType::f32, .seed = 9}));
      return std::pair{y.detach(), gradient(x)};
    };
    const auto [y, dx] = run(quantised);
    const auto [expected_y, expected_dx] = run(widened);
    EXPECT_TRUE(same_bits(y, expected_y));
    EXPECT_TRUE(same_bits(dx, expected_dx));
  }
}

TEST(SegmentLinear, IsTheSameOnEveryDevice) {
  EXPECT_LT(device_error(segment_product, random_inputs(DType::f32)), 1e-5);
}

TEST(SegmentLinear, InBfloat16ItIsNearToFloat32) {
  const std::vector<Tensor> inputs = random_inputs(DType::f32, 32, 16);
  const std::vector<Tensor> expected = outputs_and_gradients(segment_product, inputs, Cpu{});
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const std::vector<Tensor> found = outputs_and_gradients(segment_product, inputs, Cpu{});
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LT(relative_error(found[i], expected[i]), 2e-2) << i;
  EXPECT_LT(device_error(segment_product, inputs), 1e-2);
}

TEST(SegmentLinear, PanelsGiveWhatEachSegmentGivesAlone) {
  const std::vector<Tensor> t = random_inputs(DType::f32, 33, 20);
  for (const WeightFormat format : {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8}) {
    std::vector<PanelWeight> weights;
    for (const size_t w : {1, 3, 5}) weights.push_back(PanelWeight::lay_out(t[w], format));
    const std::vector<PanelParameters> parameters = {{&weights[0], t[2]}, {&weights[1], t[4]}, {&weights[2], t[6]}};
    const Tensor y = segment_panel_linear(t[0], kSegmentOffsets, parameters);
    EXPECT_TRUE(same_bits(y.rows(0, 3), panel_linear(t[0].rows(0, 3), weights[0], t[2])));
    EXPECT_TRUE(same_bits(y.rows(3, 8), panel_linear(t[0].rows(3, 8), weights[2], t[6])));
  }
}

TEST(SegmentLinear, RefusesOffsetsThatDoNotCoverTheRows) {
  const std::vector<Tensor> t = random_inputs(DType::f32);
  const std::vector<LinearParameters> parameters = {{t[1], t[2]}, {t[3], t[4]}};
  for (const std::vector<int64_t>& offsets : std::vector<std::vector<int64_t>>{{0, 8}, {0, 3, 7}, {0, 9, 8}, {1, 3, 8}})
    EXPECT_THROW(segment_linear(t[0], offsets, parameters), ShapeError);
}

}  // namespace
}  // namespace attune

#include "attune/ops/expert_rows.h"

#include <gtest/gtest.h>

#include "attune/ops/linear/precision.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

// Three tokens with two of four experts each; nobody chose expert 2.
ExpertRows small_rows(int64_t unit = 1) {
  return sort_by_expert(Tensor::from({3, 2}, std::vector<int32_t>{3, 0, 0, 1, 3, 1}), 4, unit);
}

TEST(ExpertRows, AreInTheOrderOfExpertsAndThenOfTokens) {
  const ExpertRows rows = small_rows();
  EXPECT_EQ(rows.counts, (std::vector<int64_t>{2, 2, 0, 2}));
  EXPECT_EQ(rows.offsets, (std::vector<int64_t>{0, 2, 4, 4, 6}));
  const auto places = rows.places.values();
  EXPECT_EQ(std::vector<int32_t>(places.begin(), places.end()), (std::vector<int32_t>{4, 0, 1, 2, 5, 3}));
}

TEST(ExpertRows, AreFilledUpToAMultipleOfTheUnit) {
  const ExpertRows rows = small_rows(4);
  EXPECT_EQ(rows.offsets, (std::vector<int64_t>{0, 4, 8, 8, 12}));
  const Tensor spread = spread_to_experts(Tensor::full({3, 2}, 5), rows);
  const std::vector<float> values = host_values<float>(spread);
  for (int64_t row = 0; row < 12; ++row) EXPECT_EQ(values[static_cast<size_t>(2 * row)], row % 4 < 2 ? 5 : 0) << row;
}

TEST(ExpertRows, CombineIsTheWeightedSum) {
  const Tensor x = Tensor::from({6, 1}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const Tensor weights = Tensor::from({3, 2}, std::vector<double>{1, 10, 1, 10, 1, 10});
  EXPECT_EQ(host_values<double>(combine_experts(x, weights, small_rows())), (std::vector<double>{15, 32, 46}));
}

TEST(ExpertRows, GradientsMatchFiniteDifferences) {
  for (const int64_t unit : {1, 4}) {
    const ExpertRows rows = small_rows(unit);
    EXPECT_LT(gradient_error([&](auto& t) { return spread_to_experts(t, rows); }, normal({3, 5}, {.seed = 1})), 1e-7);
    const auto combine = [&](const std::vector<Tensor>& t) { return combine_experts(t[0], t[1], rows); };
    EXPECT_LT(gradient_error(combine, {normal({rows.rows(), 5}, {.seed = 2}), normal({3, 2}, {.seed = 3})}), 1e-7);
  }
}

TEST(ExpertRows, AreTheSameOnEveryDevice) {
  const int64_t tokens = 400, experts = 7, d = 37;
  std::vector<int32_t> chosen;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto first = static_cast<int32_t>(t * t % experts);
    chosen.insert(chosen.end(), {first, static_cast<int32_t>((first + 1 + t % 3) % experts)});
  }
  const ExpertRows rows = sort_by_expert(Tensor::from({tokens, 2}, chosen), experts, 8);
  const auto spread = [&](const std::vector<Tensor>& t) { return spread_to_experts(t[0], rows); };
  EXPECT_LT(device_error(spread, {normal({tokens, d}, {.dtype = DType::f32, .seed = 1})}), 1e-6);
  const auto combine = [&](const std::vector<Tensor>& t) { return combine_experts(t[0], t[1], rows); };
  const Tensor x = normal({rows.rows(), d}, {.dtype = DType::f32, .seed = 2});
  const Tensor weights = normal({tokens, 2}, {.dtype = DType::f32, .seed = 3});
  EXPECT_LT(device_error(combine, {x, weights}), 1e-5);
  // Rows in bfloat16 are summed in float32.
  const auto narrow = [&](const std::vector<Tensor>& t) { return combine_experts(to_bfloat16(t[0]), t[1], rows); };
  EXPECT_LT(device_error(narrow, {x, weights}), 1e-5);
  EXPECT_EQ(narrow({x, weights}).dtype(), DType::f32);
}

TEST(ExpertRows, RefusesAnExpertThatIsNotThere) {
  EXPECT_THROW(sort_by_expert(Tensor::from({1, 2}, std::vector<int32_t>{0, 4}), 4), ShapeError);
  EXPECT_THROW(sort_by_expert(Tensor::from({1, 2}, std::vector<int32_t>{0, -1}), 4), ShapeError);
  EXPECT_THROW(spread_to_experts(normal({2, 5}), small_rows()), ShapeError);
  EXPECT_THROW(combine_experts(normal({6, 5}), normal({3, 3}), small_rows()), ShapeError);
}

}  // namespace
}  // namespace attune

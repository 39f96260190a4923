#include "attune/ops/linear/linear_columns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

TEST(LinearColumns, AreThoseOfLinear) {
  for_each_target([&](const char* target) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor x = normal({5, 37}, {.dtype = dtype, .seed = 1}), w = normal({50, 37}, {.dtype = dtype, .seed = 2}),
                   b = normal({50}, {.dtype = dtype, .seed = 3});
      const std::vector<int32_t> some = {0, 7, 8, 49}, others = {3}, none;
      const std::vector<std::span<const int32_t>> columns = {some, some, others, none, some};
      for (const Tensor& bias : {b, Tensor{}}) {
        const Tensor all = linear(x, w, bias).to(DType::f64), y = linear_columns(x, w, bias, columns).to(DType::f64);
        ASSERT_EQ(y.shape(), Shape({5, 4}));
        for (int64_t r = 0; r < 5; ++r) {
          for (int64_t j = 0; j < 4; ++j) {
            const auto& list = columns[static_cast<size_t>(r)];
            const double found = y.data<double>()[r * 4 + j];
            if (j >= static_cast<int64_t>(list.size())) {
              EXPECT_EQ(found, -std::numeric_limits<double>::infinity());
            } else {
              EXPECT_NEAR(found, all.data<double>()[r * 50 + list[static_cast<size_t>(j)]],
                          dtype == DType::f32 ? 1e-4 : 1e-12)
                  << target;
            }
          }
        }
      }
    }
  });
}

void expect_same_columns_on(const Device& device, DType dtype, bool with_bias) {
  const std::vector<int32_t> some = {0, 7, 8, 49}, others = {3}, none;
  const std::vector<std::span<const int32_t>> columns = {some, some, others, none, some};
  const Tensor x = normal({5, 37}, {.dtype = dtype, .seed = 1}), w = normal({50, 37}, {.dtype = dtype, .seed = 2});
  const Tensor bias = with_bias ? normal({50}, {.dtype = dtype, .seed = 3}) : Tensor{};
  const Tensor expected = linear_columns(x, w, bias, columns);
  const Tensor found =
      linear_columns(x.to(device), w.to(device), with_bias ? bias.to(device) : bias, columns).to(Cpu{});
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t r = 0; r < 5; ++r) {
    const auto used = static_cast<int64_t>(columns[static_cast<size_t>(r)].size());
    const auto row = [&](const Tensor& y, int64_t begin, int64_t end) {
      return y.reshape({-1}).rows(r * 4 + begin, r * 4 + end);
    };
    EXPECT_LT(relative_error(row(found, 0, used), row(expected, 0, used)), dtype == DType::f32 ? 1e-5 : 1e-12);
    EXPECT_TRUE(same_bits(row(found, used, 4), row(expected, used, 4)));
  }
}

TEST(LinearColumns, AreTheSameOnEveryDevice) {
  for (const Device& device : devices_under_test()) {
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool with_bias : {false, true}) expect_same_columns_on(device, dtype, with_bias);
  }
}

TEST(LinearColumns, OfABfloat16WeightAreThoseOfItsNumbers) {
  const std::vector<int32_t> some = {0, 7, 8, 49}, others = {3};
  const std::vector<std::span<const int32_t>> columns = {some, some, others};
  for (const Device& device : all_devices()) {
    const Tensor x = normal({3, 37}, {.dtype = DType::f32, .seed = 1}).to(device);
    const Tensor narrow = to_bfloat16(normal({50, 37}, {.dtype = DType::f32, .seed = 2})).to(device);
    const Tensor wide = to_float32(narrow), bias = normal({50}, {.dtype = DType::f32, .seed = 3}).to(device);
    const auto columns_of = [&](const Tensor& rows, const Tensor& weight) {
      return linear_columns(rows, weight, bias, columns).to(Cpu{});
    };
    EXPECT_TRUE(same_bits(columns_of(x, narrow), columns_of(x, wide))) << device.text();
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    const Tensor found = columns_of(x, narrow);
    EXPECT_TRUE(same_bits(found, columns_of(to_float32(to_bfloat16(x)), wide))) << device.text();
    EXPECT_FALSE(same_bits(found, columns_of(x, wide))) << device.text();
    const std::vector<float> all = host_values<float>(linear(x, narrow, bias)), selected = host_values<float>(found);
    for (size_t r = 0; r < 3; ++r)
      for (size_t j = 0; j < columns[r].size(); ++j)
        EXPECT_NEAR(selected[r * 4 + j], all[r * 50 + static_cast<size_t>(columns[r][j])], 1e-4) << device.text();
  }
}

TEST(LinearColumns, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({1, 4}), w = Tensor::zeros({3, 4});
  const std::vector<int32_t> list = {3};
  const std::vector<std::span<const int32_t>> columns = {list};
  EXPECT_EQ(message_of<ShapeError>([&] { linear_columns(x, w, {}, columns); }),
            "linear_columns: column 3 of weight [3, 4]");
  EXPECT_THROW(linear_columns(x, w, {}, {}), ShapeError);
  EXPECT_THROW(linear_columns(x, Tensor::zeros({3, 5}), {}, columns), ShapeError);
  EXPECT_THROW(linear_columns(x, w, Tensor::zeros({4}), columns), ShapeError);
  EXPECT_THROW(linear_columns(x.to(DType::f64), to_bfloat16(w), {}, columns), ShapeError);
  EXPECT_THROW(linear_columns(to_bfloat16(x), w, {}, columns), ShapeError);
  EXPECT_THROW(linear_columns(x, w.to(Plain{}), {}, std::vector<std::span<const int32_t>>(1)), ShapeError);
}

}  // namespace
}  // namespace attune

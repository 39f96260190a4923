#include "attune/kernels/gemm/linear_gradient.h"

#include <gtest/gtest.h>

#include <utility>

#include "attune/tensor/dispatch.h"
#include "tests/ops/activations.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

// dz and its column sums against one number at a time.
template <class T, class Dy, class Dz>
void expect_linear_gradient(const char* target, double tolerance) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 5}, {6, 16}, {200, 37}}) {
    const Tensor dy = normal({rows, columns}, {.seed = 1}).to(dtype_of<Dy>);
    const Tensor saved = normal({rows, columns}, {.seed = 2}).to(dtype_of<Dz>);
    for (const bool relu : {false, true}) {
      const auto [one, two] = with_one_and_two_threads([&, rows = rows, columns = columns] {
        const Tensor dz = Tensor::empty({rows, columns}, {.dtype = dtype_of<Dz>});
        const Tensor sums = Tensor::empty({columns}, {.dtype = dtype_of<T>});
        linear_gradient(Cpu{}, {.dy = dy,
                                .saved = relu ? saved : Tensor{},
                                .activation = relu ? Activation::relu : Activation::none,
                                .scale = 1.25,
                                .dz = dz,
                                .d_bias = sums});
        return std::pair(dz, sums);
      });
      EXPECT_TRUE(same_bits(one.first, two.first) && same_bits(one.second, two.second)) << target;
      const Tensor sums = Tensor::zeros({columns}, {.dtype = DType::f64});
      for (int64_t i = 0; i < rows * columns; ++i) {
        const double slope = !relu || static_cast<double>(saved.data<Dz>()[i]) > 0 ? 1.25 : 0;
        const double dz = static_cast<double>(dy.data<Dy>()[i]) * slope;
        ASSERT_EQ(static_cast<double>(one.first.template data<Dz>()[i]),
                  static_cast<double>(static_cast<Dz>(static_cast<T>(dz))))
            << target << " " << i;
        sums.data<double>()[i % columns] += dz;
      }
      EXPECT_LT(relative_error(one.second.to(DType::f64), sums), tolerance) << target;
    }
  }
}

TEST(LinearGradient, EveryTargetAgreesWithAPlainLoop) {
  for_each_target([](const char* target) {
    expect_linear_gradient<float, float, float>(target, 1e-5);
    expect_linear_gradient<double, double, double>(target, 1e-13);
    expect_linear_gradient<float, float, bfloat16>(target, 1e-5);
    expect_linear_gradient<float, bfloat16, bfloat16>(target, 1e-5);
  });
}

// dz and the sums of its columns, on every device as on the CPU.
void expect_same_on_every_device(int64_t rows, int64_t columns, DType dy_type, DType dz_type, DType d_bias_type) {
  const Tensor dy = normal({rows, columns}, {.seed = 1}).to(dy_type);
  const Tensor saved = normal({rows, columns}, {.seed = 2}).to(dz_type);
  for (const Activation activation : kActivations) {
    const auto run = [&](const Device& device) {
      const Tensor dz = Tensor::empty({rows, columns}, {dz_type, device});
      const Tensor sums = Tensor::empty({columns}, {d_bias_type, device});
      const LinearGradient arguments{.dy = dy.to(device),
                                     .saved = activation == Activation::none ? Tensor{} : saved.to(device),
                                     .activation = activation,
                                     .scale = 1.25,
                                     .dz = dz,
                                     .d_bias = sums};
      dispatch(device, [&](auto d) { linear_gradient(d, arguments); });
      return std::pair(dz.to(Cpu{}), sums.to(Cpu{}));
    };
    const auto expected = run(Cpu{});
    const double tolerance = dz_type == DType::bf16 ? 1.0 / 256 : device_tolerance(dz_type);
    for (const Device& device : devices_under_test()) {
      const auto found = run(device);
      EXPECT_LT(relative_error(found.first, expected.first), tolerance) << columns << static_cast<int>(activation);
      EXPECT_LT(relative_error(found.second, expected.second), device_tolerance(d_bias_type)) << columns;
    }
  }
}

// 36 columns are read four at once, 37 one at a time; 270 rows are two pieces.
TEST(LinearGradient, IsTheSameOnEveryDevice) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{70, 37}, {270, 36}}) {
    expect_same_on_every_device(rows, columns, DType::f32, DType::f32, DType::f32);
    expect_same_on_every_device(rows, columns, DType::f64, DType::f64, DType::f64);
    expect_same_on_every_device(rows, columns, DType::f32, DType::bf16, DType::f32);
    expect_same_on_every_device(rows, columns, DType::bf16, DType::bf16, DType::f32);
  }
}

}  // namespace
}  // namespace attune

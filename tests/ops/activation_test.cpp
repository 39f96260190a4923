#include "attune/ops/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/ops/activation_kernel.h"
#include "attune/ops/column_sums_kernel.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

double plain_gelu(double x) {
  return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  EXPECT_LT(gradient_error([](auto& x) { return relu(x); }, normal({5, 13}, {.seed = 1})), 1e-8);
  EXPECT_LT(gradient_error([](auto& x) { return gelu(x); }, normal({5, 13}, {.seed = 1, .deviation = 2})), 1e-8);
}

// Gelu is x (1 + erf) / 2 and its slope is near (1 + erf) / 2, so that both show the error of erf.
TEST(Activation, GeluInFloat32IsAccurateOnEveryTarget) {
  const int64_t n = 400001;
  const Tensor x = Tensor::empty({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i - n / 2) * 5e-5f;  // -10 to 10
  const Tensor ones = Tensor::full({n}, 1.0);
  for_each_target([&](const char* target) {
    const Tensor y = gelu(x);
    const Tensor slope = Tensor::empty({n});
    activation_backward(Cpu{}, ActivationKind::gelu, x.data<float>(), ones.data<float>(), slope.data<float>(), n);
    double error = 0, slope_error = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double v = x.data<float>()[i];
      const double density = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
      error = std::max(error, std::abs(y.data<float>()[i] - plain_gelu(v)) / std::max(1.0, std::abs(v)));
      slope_error = std::max(slope_error,
                             std::abs(slope.data<float>()[i] - ((1 + std::erf(v / std::sqrt(2.0))) / 2 + v * density)));
    }
    EXPECT_LT(error, 2e-7) << target;
    EXPECT_LT(slope_error, 4e-7) << target;
  });
}

TEST(Activation, ReluCutsAndPassesOnEveryTarget) {
  for_each_target([&](const char* target) {
    for (const int64_t n : {1, 7, 16, 100}) {
      const Tensor x = normal({n}, {.dtype = DType::f32, .seed = 3});
      const Tensor dy = normal({n}, {.dtype = DType::f32, .seed = 4});
      Tensor tracked = x.detach();
      require_gradient(tracked);
      const Tensor y = relu(tracked);
      backward(y, dy);
      for (int64_t i = 0; i < n; ++i) {
        const float v = x.data<float>()[i];
        EXPECT_EQ(y.data<float>()[i], std::max(v, 0.0f)) << target;
        EXPECT_EQ(gradient(tracked).data<float>()[i], v > 0 ? dy.data<float>()[i] : 0.0f) << target;
      }
    }
  });
}

TEST(Activation, ExtremesStayWhatTheyAre) {
  const std::vector<float> values{NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e30f, -1e30f, 1e-30f};
  for_each_target([&](const char* target) {
    const Tensor x = Tensor::from({8}, values);
    const Tensor r = relu(x);
    const Tensor g = gelu(x);
    EXPECT_TRUE(std::isnan(r.data<float>()[0]) && std::isnan(g.data<float>()[0])) << target;
    EXPECT_EQ(r.data<float>()[1], INFINITY) << target;
    EXPECT_EQ(g.data<float>()[1], INFINITY) << target;
    EXPECT_EQ(r.data<float>()[2], 0) << target;
    EXPECT_EQ(g.data<float>()[5], 1e30f) << target;
    EXPECT_EQ(g.data<float>()[6], 0) << target;
    EXPECT_EQ(g.data<float>()[7], 0.5e-30f) << target;
  });
}

TEST(ColumnSums, EqualAPlainLoopWhateverTheThreadsAndTargets) {
  for_each_target([&](const char* target) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 5}, {3, 16}, {70, 33}, {5000, 130}}) {
      const Tensor x = normal({rows, columns}, {.seed = 1});
      const Tensor expected = Tensor::full({columns}, 1.0, {.dtype = DType::f64});
      for (int64_t i = 0; i < rows * columns; ++i) expected.data<double>()[i % columns] += x.data<double>()[i];
      const Tensor x32 = x.to(DType::f32);
      const auto [one, two] = with_one_and_two_threads([&, rows = rows, columns = columns] {
        const Tensor out = Tensor::full({columns}, 1.0);
        column_sums(Cpu{}, x32.data<float>(), rows, columns, out.data<float>(), true);
        return out;
      });
      EXPECT_TRUE(same_bits(one, two)) << target;
      EXPECT_LT(relative_error(one, expected), 3e-6) << target;
    }
  });
  const Tensor out =
      Tensor::full({4}, 7.0);  // without `accumulate` nothing of it stays, not even when there are no rows
  column_sums(Cpu{}, out.data<float>(), 0, 4, out.data<float>(), false);
  EXPECT_TRUE(same_bits(out, Tensor::zeros({4})));
}

}  // namespace
}  // namespace attune

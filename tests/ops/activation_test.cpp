#include "attune/ops/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "attune/autograd/graph.h"
#include "attune/kernels/activation.h"
#include "attune/kernels/gemm/column_sums.h"
#include "attune/tensor/host_view.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_error.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

struct Smooth {
  Activation kind;
  Tensor (*function)(const Tensor&);
  double (*value)(double);
  double (*slope)(double);
};

double normal_distribution(double x) {
  return (1 + std::erf(x / std::sqrt(2.0))) / 2;
}
double cubic(double x) {
  return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

const Smooth kSmooth[] = {
    {Activation::gelu, gelu, [](double x) { return x * normal_distribution(x); },
     [](double x) { return normal_distribution(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }},
    {Activation::gelu_tanh, gelu_tanh, [](double x) { return 0.5 * x * (1 + std::tanh(cubic(x))); },
     [](double x) {
       const double t = std::tanh(cubic(x));
       return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
     }},
    {Activation::gelu_sigmoid, gelu_sigmoid, [](double x) { return x * sigmoid(1.702 * x); },
     [](double x) { return sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))); }},
    {Activation::silu, silu, [](double x) { return x * sigmoid(x); },
     [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }},
    {Activation::tanh, tanh, [](double x) { return std::tanh(x); },
     [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
};

template <class T>
std::vector<T> slopes(Activation kind, const Tensor& x) {
  const Tensor ones = Tensor::full(x.shape(), 1, {.dtype = x.dtype()}), result = Tensor::empty_like(x);
  activation_backward(Cpu{}, kind, x, ones, result);
  return host_values<T>(result);
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  EXPECT_LT(gradient_error([](auto& x) { return relu(x); }, normal({5, 13}, {.seed = 1})), 1e-8);
  for (const Smooth& activation : kSmooth)
    EXPECT_LT(gradient_error(activation.function, normal({5, 13}, {.seed = 1, .deviation = 2})), 1e-8);
}

// Values and slopes of these are x and 1 times a probability, so that both show its error.
TEST(Activation, Float32IsAccurateOnEveryTarget) {
  const int64_t n = 400001;
  const Tensor x = Tensor::empty({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i - n / 2) * 5e-5f;  // -10 to 10
  for_each_target([&](const char* target) {
    for (const Smooth& activation : kSmooth) {
      const Tensor y = activation.function(x);
      const std::vector<float> slope = slopes<float>(activation.kind, x);
      double error = 0, slope_error = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double v = x.data<float>()[i];
        error = larger_error(error, std::abs(y.data<float>()[i] - activation.value(v)) / std::max(1.0, std::abs(v)));
        slope_error = larger_error(slope_error, std::abs(slope[static_cast<size_t>(i)] - activation.slope(v)));
      }
      EXPECT_LT(error, 2e-7) << target << " " << static_cast<int>(activation.kind);
      EXPECT_LT(slope_error, 4e-7) << target << " " << static_cast<int>(activation.kind);
    }
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

template <class T>
void check_extremes(const Smooth& activation, const char* target) {
  const T large = std::numeric_limits<T>::max() / 2, tiny = T(1e-30);
  const std::vector<T> values{NAN, INFINITY, -INFINITY, 0, large, -large, T(1e10), T(-1e10), 100, -100, tiny};
  const Tensor x = Tensor::from({static_cast<int64_t>(values.size())}, values);
  const Tensor result = activation.function(x);
  const std::span<const T> y = result.values<T>();
  const std::vector<T> slope = slopes<T>(activation.kind, x);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(slope[0])) << target;
  EXPECT_EQ(y[1], T(INFINITY)) << target;
  EXPECT_TRUE(std::isnan(y[2])) << target;  // a broken number stays visible
  EXPECT_EQ(y[3], 0) << target;
  EXPECT_EQ(slope[3], T(0.5)) << target;
  EXPECT_EQ(y[10], tiny / 2) << target;
  for (const size_t i : {size_t{4}, size_t{6}, size_t{8}}) {
    EXPECT_EQ(y[i], values[i]) << target << " " << values[i];
    EXPECT_EQ(slope[i], 1) << target << " " << values[i];
    EXPECT_NEAR(y[i + 1], 0, 1e-40) << target << " " << values[i + 1];
    EXPECT_NEAR(slope[i + 1], 0, 1e-40) << target << " " << values[i + 1];
  }
}

TEST(Activation, ExtremesStayWhatTheyAre) {
  const std::vector<float> values{NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e30f, -1e30f, 1e-30f};
  for_each_target([&](const char* target) {
    const Tensor r = relu(Tensor::from({8}, values));
    EXPECT_TRUE(std::isnan(r.data<float>()[0])) << target;
    for (int64_t i = 1; i < 8; ++i) EXPECT_EQ(r.data<float>()[i], std::max(values[static_cast<size_t>(i)], 0.0f));
    for (const Smooth& activation : kSmooth) {
      if (activation.kind == Activation::tanh) continue;  // has another shape
      check_extremes<float>(activation, target);
      check_extremes<double>(activation, target);
    }
    const Tensor t = tanh(Tensor::from({8}, values));
    const std::vector<float> expected{NAN, 1, -1, 0, 0, 1, -1, 0};
    EXPECT_TRUE(std::isnan(t.data<float>()[0])) << target;
    for (size_t i = 1; i < 8; ++i) EXPECT_EQ(t.data<float>()[i], expected[i]) << target;
  });
}

TEST(ColumnSums, EqualAPlainLoopWhateverTheThreadsAndTargets) {
  for_each_target([&](const char* target) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 5}, {3, 16}, {70, 33}, {5000, 130}}) {
      const Tensor x = normal({rows, columns}, {.seed = 1});
      const Tensor expected = Tensor::full({columns}, 1.0, {.dtype = DType::f64});
      for (int64_t i = 0; i < rows * columns; ++i) expected.data<double>()[i % columns] += x.data<double>()[i];
      const Tensor x32 = x.to(DType::f32);
      const auto [one, two] = with_one_and_two_threads([&, columns = columns] {
        const Tensor out = Tensor::full({columns}, 1.0);
        column_sums(Cpu{}, x32, out, true);
        return out;
      });
      EXPECT_TRUE(same_bits(one, two)) << target;
      EXPECT_LT(relative_error(one, expected), 3e-6) << target;
    }
  });
  const Tensor out =
      Tensor::full({4}, 7.0);  // without `accumulate` nothing of it stays, not even when there are no rows
  column_sums(Cpu{}, Tensor::empty({0, 4}), out, false);
  EXPECT_TRUE(same_bits(out, Tensor::zeros({4})));
}

}  // namespace
}  // namespace attune

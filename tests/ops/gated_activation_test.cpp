#include "attune/ops/gated_activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::gelu_sigmoid,
                                 Activation::silu};

double plain(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      break;
    case Activation::relu:
      return std::max(0.0, x);
    case Activation::gelu:
      return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
    case Activation::gelu_tanh:
      return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    case Activation::gelu_sigmoid:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

Tensor plain_gated_activation(const Tensor& x, Activation kind) {
  const int64_t rows = x.size(0), d = x.size(1) / 2;
  const Tensor y = Tensor::empty({rows, d}, {.dtype = DType::f64});
  for (int64_t i = 0; i < rows; ++i) {
    const double* row = x.data<double>() + i * 2 * d;
    for (int64_t j = 0; j < d; ++j) y.data<double>()[i * d + j] = plain(kind, row[j]) * row[d + j];
  }
  return y;
}

TEST(GatedActivation, EqualsTheFormulaOnEveryTargetAndWidth) {
  for_each_target([](const char* target) {
    for (const Activation kind : kKinds) {
      for (const int64_t d : {1, 2, 7, 16, 33, 250}) {
        const Tensor x = normal({9, 2 * d}, {.seed = 1, .deviation = 3});
        const Tensor expected = plain_gated_activation(x, kind);
        EXPECT_LT(relative_error(gated_activation(x, kind), expected), 1e-14) << target << " " << d;
        EXPECT_LT(relative_error(gated_activation(x.to(DType::f32), kind), expected), 1e-6) << target << " " << d;
      }
    }
  });
}

TEST(GatedActivation, GradientMatchesFiniteDifferencesOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const Activation kind : kKinds) {
      EXPECT_LT(gradient_error([=](auto& x) { return gated_activation(x, kind); },
                               normal({2, 3, 38}, {.seed = 1, .deviation = 2})),
                1e-8)
          << target;
    }
  });
}

TEST(GatedActivation, Float32GradientsAgreeWithFloat64OnEveryTargetAndThreadCount) {
  const Tensor input = normal({300, 2 * 131}, {.seed = 1, .deviation = 2});
  for (const Activation kind : kKinds) {
    auto run = [&](DType dtype) {
      Tensor x = input.to(dtype).detach();
      require_gradient(x);
      backward(gated_activation(x, kind), normal({300, 131}, {.seed = 2}).to(dtype));
      return gradient(x);
    };
    const Tensor expected = run(DType::f64);
    for_each_target([&](const char* target) {
      const auto [one, two] = with_one_and_two_threads([&] { return run(DType::f32); });
      EXPECT_TRUE(same_bits(one, two)) << target;
      EXPECT_LT(relative_error(one, expected), 1e-6) << target;
    });
  }
}

TEST(GatedActivation, ExtremesOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const Activation kind : kKinds) {
      Tensor x =
          Tensor::from({6, 2}, std::vector<float>{0, 3, 100, 3, -100, 3, 1e30f, 1e-30f, -1e30f, 1e30f, INFINITY, -1});
      require_gradient(x);
      const Tensor y = gated_activation(x, kind);
      backward(y);
      const auto found = y.values<float>();
      EXPECT_EQ(found[0], 0) << target;
      EXPECT_EQ(found[1], 300) << target;
      EXPECT_NEAR(found[2], 0, 1e-35) << target;
      EXPECT_FLOAT_EQ(found[3], 1) << target;
      EXPECT_EQ(found[4], 0) << target;
      EXPECT_EQ(found[5], -INFINITY) << target;
      EXPECT_EQ(first_not_finite(gradient(x).rows(0, 5)), -1) << target;
      for (const auto& [gate, up] : {std::pair{NAN, 1.0f}, {1.0f, NAN}})
        EXPECT_TRUE(
            std::isnan(gated_activation(Tensor::from({2}, std::vector<float>{gate, up}), kind).values<float>()[0]))
            << target;
    }
  });
}

TEST(GatedActivation, EmptyBatch) {
  EXPECT_EQ(gated_activation(Tensor::empty({0, 6}), Activation::silu).shape(), (Shape{0, 3}));
  EXPECT_EQ(gated_activation(Tensor::empty({4, 0}), Activation::silu).shape(), (Shape{4, 0}));
}

TEST(GatedActivation, NamesWhatHasNoHalves) {
  EXPECT_EQ(message_of<ShapeError>([] {
              gated_activation(Tensor::zeros({3, 5}), Activation::silu);
            }),
            "gated_activation: input [3, 5] has 5 columns, which are not two halves");
  EXPECT_THROW(gated_activation({}, Activation::silu), ShapeError);
}

}  // namespace
}  // namespace attune

#include <gtest/gtest.h>

#include <cmath>

#include "attune/kernels/adam.h"
#include "attune/kernels/reduce.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

struct State {
  Tensor parameter, m, v, average;
};

State initial(int64_t n, DType dtype) {
  return {normal({n}, {.dtype = dtype, .seed = 1}), Tensor::zeros({n}, {.dtype = dtype}),
          Tensor::zeros({n}, {.dtype = dtype}), normal({n}, {.dtype = dtype, .seed = 1})};
}

Tensor gradient_of_step(int64_t n, int step, DType dtype) {
  return normal({n}, {.dtype = dtype, .seed = static_cast<uint64_t>(100 + step)});
}

AdamStepArguments arguments_of(int step, double weight_decay, double l2) {
  AdamStepArguments a{.learning_rate = 0.01, .beta_1 = 0.9, .beta_2 = 0.98, .epsilon = 1e-9};
  a.weight_decay = weight_decay;
  a.l2 = l2;
  a.gradient_scale = 0.7;
  a.bias_correction_1 = 1 - std::pow(a.beta_1, step);
  a.bias_correction_2 = 1 - std::pow(a.beta_2, step);
  return a;
}

constexpr double kDecay = 0.9;

// Algorithm 1 of Kingma & Ba with the weight decays of Loshchilov & Hutter, one element at a time.
void plain_step(const State& s, const Tensor& gradient, const AdamStepArguments& a) {
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    double& p = s.parameter.data<double>()[i];
    double& m = s.m.data<double>()[i];
    double& v = s.v.data<double>()[i];
    const double g = gradient.data<double>()[i] * a.gradient_scale + a.l2 * p;
    m = a.beta_1 * m + (1 - a.beta_1) * g;
    v = a.beta_2 * v + (1 - a.beta_2) * g * g;
    p *= 1 - a.learning_rate * a.weight_decay;
    p -= a.learning_rate * (m / a.bias_correction_1) / (std::sqrt(v / a.bias_correction_2) + a.epsilon);
    double& average = s.average.data<double>()[i];
    average = kDecay * average + (1 - kDecay) * p;
  }
}

template <class T>
State run(int64_t n, double weight_decay, double l2) {
  const State s = initial(n, dtype_of<T>);
  for (int step = 1; step <= 5; ++step) {
    const Tensor gradient = gradient_of_step(n, step, dtype_of<T>);
    adam_step(Cpu{}, {.parameter = s.parameter, .gradient = gradient, .m = s.m, .v = s.v, .average = s.average}, kDecay,
              arguments_of(step, weight_decay, l2));
  }
  return s;
}

TEST(Adam, EqualsTheAlgorithmOnEveryTarget) {
  for (const auto& [weight_decay, l2] : {std::pair{0.0, 0.0}, {0.1, 0.0}, {0.0, 0.1}}) {
    for (const int64_t n : {1, 7, 16, 101}) {
      const State expected = initial(n, DType::f64);
      for (int step = 1; step <= 5; ++step)
        plain_step(expected, gradient_of_step(n, step, DType::f64), arguments_of(step, weight_decay, l2));
      for_each_target([&, weight_decay = weight_decay, l2 = l2](const char* target) {
        const State found = run<double>(n, weight_decay, l2);
        EXPECT_LT(relative_error(found.parameter, expected.parameter), 1e-13) << target;
        EXPECT_LT(relative_error(found.average, expected.average), 1e-13) << target;
        const State single = run<float>(n, weight_decay, l2);
        EXPECT_LT(relative_error(single.parameter, expected.parameter), 1e-6) << target;
        EXPECT_LT(relative_error(single.v, expected.v), 1e-6) << target;
        EXPECT_LT(relative_error(single.average, expected.average), 1e-6) << target;
      });
    }
  }
}

// torch.optim.Adam(lr=0.1, betas=(0.9, 0.99), eps=1e-8) on p = 1 with gradients 0.5 and -0.25: the first step moves by
// lr.
TEST(Adam, FirstStepMovesByTheLearningRate) {
  const auto number = [](double value) { return Tensor::full({1}, value, {.dtype = DType::f64}); };
  const Tensor p = number(1), m = number(0), v = number(0), g = number(0.5), none;
  adam_step(Cpu{}, {.parameter = p, .gradient = g, .m = m, .v = v, .average = none}, 0,
            {.learning_rate = 0.1,
             .beta_1 = 0.9,
             .beta_2 = 0.99,
             .epsilon = 1e-8,
             .bias_correction_1 = 0.1,
             .bias_correction_2 = 0.01});
  EXPECT_NEAR(p.item(), 0.9, 1e-8);
  EXPECT_NEAR(m.item(), 0.05, 1e-15);
  EXPECT_NEAR(v.item(), 0.0025, 1e-15);
}

// A mean of which both factors are rounded settles at another value than what it follows: 1.7e-4 beside it for 0.9999.
TEST(Adam, LongAveragesSettleWhereTheParametersAre) {
  constexpr double kLong = 0.9999;
  for_each_target([](const char* target) {
    const Tensor p = Tensor::full({20}, 1.0, {.dtype = DType::f32}), average = Tensor::full({20}, 1.0);
    const Tensor m = Tensor::zeros({20}), v = Tensor::zeros({20}), g = Tensor::zeros({20});
    double expected = 1;
    for (int step = 1; step <= 60000; ++step) {
      const auto value = static_cast<float>(1 + 1e-3 * std::sin(step));  // rounded anew at each step
      for (float& x : p.values<float>()) x = value;
      adam_step(Cpu{}, {.parameter = p, .gradient = g, .m = m, .v = v, .average = average}, kLong, {});
      expected = kLong * expected + (1 - kLong) * static_cast<double>(value);
    }
    EXPECT_NEAR(average.values<float>()[0], expected, 1e-5) << target;
  });
}

TEST(Adam, ThreadsDoNotChangeIt) {
  const auto [one, two] = with_one_and_two_threads([] { return run<float>(200003, 0.1, 0.0); });
  EXPECT_TRUE(same_bits(one.parameter, two.parameter));
}

TEST(SumOfSquares, IsExactEnoughAndTheSameWhateverTheThreads) {
  for_each_target([](const char* target) {
    for (const int64_t n : {0, 1, 33, 200003}) {
      const Tensor x = normal({n}, {.dtype = DType::f32, .seed = 1});
      double expected = 0;
      for (const float v : x.values<float>()) expected += static_cast<double>(v) * v;
      const auto [one, two] = with_one_and_two_threads([&] { return sum_of_squares(Cpu{}, x); });
      EXPECT_EQ(one, two) << target;
      EXPECT_NEAR(one, expected, 1e-12 * expected) << target;
      const Tensor wide = x.to(DType::f64);
      EXPECT_NEAR(sum_of_squares(Cpu{}, wide), expected, 1e-12 * expected) << target;
    }
    const Tensor huge = Tensor::full({50}, 1e30);  // squares beyond float32
    EXPECT_NEAR(sum_of_squares(Cpu{}, huge) / 50e60, 1, 1e-6) << target;
  });
}

}  // namespace
}  // namespace attune

#include "attune/ops/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/ops/residual.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

const DropoutMask kMask{.probability = 0.2, .seed = 1, .step = 2, .op = 3};
const LayerNormOptions kForms[] = {{.form = NormForm::variance, .epsilon = 1e-5},
                                   {.form = NormForm::unbiased_std, .epsilon = 1e-6},
                                   {.form = NormForm::rms, .epsilon = 1e-5}};

// rms has none
Tensor random_bias(int64_t d, const LayerNormOptions& options, const RandomOptions& random) {
  return options.form == NormForm::rms ? Tensor{} : normal({d}, random);
}

// The formula, element by element in float64.
Tensor plain_layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const LayerNormOptions& options) {
  const Tensor x = input.to(DType::f64);
  const Tensor y = Tensor::empty_like(x);
  const int64_t d = x.size(-1);
  for (int64_t row = 0; row < x.numel() / d; ++row) {
    const double* v = x.data<double>() + row * d;
    const auto n = static_cast<double>(d);
    double mean = 0, squares = 0;
    if (options.form != NormForm::rms)
      for (int64_t j = 0; j < d; ++j) mean += v[j] / n;
    for (int64_t j = 0; j < d; ++j) squares += (v[j] - mean) * (v[j] - mean);
    const double denominator = options.form == NormForm::unbiased_std ? std::sqrt(squares / (n - 1)) + options.epsilon
                                                                      : std::sqrt(squares / n + options.epsilon);
    for (int64_t j = 0; j < d; ++j)
      y.data<double>()[row * d + j] = weight.to(DType::f64).data<double>()[j] * (v[j] - mean) / denominator +
                                      (bias.defined() ? bias.to(DType::f64).data<double>()[j] : 0);
  }
  return y;
}

struct Gradient {
  Tensor y, dx, d_gain, d_bias;  // d_bias is undefined without a bias
};

Gradient run(const Tensor& input, const LayerNormOptions& options) {
  const TensorOptions like{.dtype = input.dtype()};
  Tensor x = input.detach();
  Tensor weight = normal({input.size(-1)}, {.dtype = like.dtype, .seed = 4, .mean = 1, .deviation = 0.3});
  Tensor bias = random_bias(input.size(-1), options, {.dtype = like.dtype, .seed = 5});
  require_gradient(x);
  require_gradient(weight);
  if (bias.defined()) require_gradient(bias);
  const Tensor y = layer_norm(x, weight, bias, options);
  backward(y, normal(input.shape(), {.dtype = like.dtype, .seed = 6}));
  return {y.detach(), gradient(x), gradient(weight), bias.defined() ? gradient(bias) : Tensor{}};
}

TEST(LayerNorm, EqualsTheFormulaOnEveryTargetAndWidth) {
  for_each_target([](const char* target) {
    for (const LayerNormOptions& options : kForms) {
      for (const int64_t d : {2, 7, 16, 33, 64, 250, 512}) {
        const Tensor x = normal({9, d}, {.dtype = DType::f32, .seed = 1, .mean = 3, .deviation = 2});
        const Tensor weight = normal({d}, {.dtype = DType::f32, .seed = 2});
        const Tensor bias = random_bias(d, options, {.dtype = DType::f32, .seed = 3});
        EXPECT_LT(relative_error(layer_norm(x, weight, bias, options), plain_layer_norm(x, weight, bias, options)),
                  2e-6)
            << target << " " << d;
      }
    }
  });
}

TEST(LayerNorm, GradientMatchesFiniteDifferences) {
  for (const LayerNormOptions& options : kForms) {
    for (const bool with_bias : {true, false}) {
      std::vector<Tensor> inputs{normal({2, 3, 19}, {.seed = 1, .mean = 0.5}), normal({19}, {.seed = 2})};
      if (with_bias && options.form != NormForm::rms) inputs.push_back(normal({19}, {.seed = 3}));
      EXPECT_LT(gradient_error([&](auto& t) { return layer_norm(t[0], t[1], t.size() > 2 ? t[2] : Tensor{}, options); },
                               inputs),
                1e-7);
    }
  }
}

TEST(LayerNorm, FusedGradientMatchesFiniteDifferences) {
  for (const LayerNormOptions& options : kForms) {
    for (const DropoutMask& mask : {kMask, DropoutMask{}}) {
      std::vector<Tensor> inputs{normal({3, 70}, {.seed = 1}), normal({3, 70}, {.seed = 2}), normal({70}, {.seed = 3})};
      if (options.form != NormForm::rms) inputs.push_back(normal({70}, {.seed = 4}));
      auto f = [&](auto& t) {
        return residual_dropout_layer_norm(t[0], t[1], mask, t[2], t.size() > 3 ? t[3] : Tensor{}, options);
      };
      EXPECT_LT(gradient_error(f, inputs), 1e-7);
    }
  }
}

TEST(LayerNorm, FusedEqualsItsParts) {
  const Tensor x = normal({50, 100}, {.dtype = DType::f32, .seed = 1});
  const Tensor y = normal({50, 100}, {.dtype = DType::f32, .seed = 2});
  for (const LayerNormOptions& options : kForms) {
    Tensor weight = normal({100}, {.dtype = DType::f32, .seed = 3});
    const Tensor bias = random_bias(100, options, {.dtype = DType::f32, .seed = 4});
    const Tensor parts = layer_norm(residual_dropout(x, y, kMask), weight, bias, options);
    EXPECT_TRUE(same_bits(residual_dropout_layer_norm(x, y, kMask, weight, bias, options), parts));
    require_gradient(weight);  // what is recorded must not change the result
    EXPECT_TRUE(same_bits(residual_dropout_layer_norm(x, y, kMask, weight, bias, options), parts));
  }
}

TEST(LayerNorm, NoBiasIsABiasOfZerosOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const NormForm form : {NormForm::variance, NormForm::unbiased_std}) {
      auto run_with = [&](const Tensor& bias) {
        Tensor x = normal({150, 37}, {.dtype = DType::f32, .seed = 1});
        Tensor weight = normal({37}, {.dtype = DType::f32, .seed = 2});
        require_gradient(x);
        require_gradient(weight);
        const Tensor y = layer_norm(x, weight, bias, {.form = form});
        backward(y, normal({150, 37}, {.dtype = DType::f32, .seed = 3}));
        return Gradient{y.detach(), gradient(x), gradient(weight), {}};
      };
      Tensor zeros = Tensor::zeros({37});
      require_gradient(zeros);
      const Gradient without = run_with({}), with = run_with(zeros);
      EXPECT_TRUE(same_bits(without.y, with.y)) << target;
      EXPECT_TRUE(same_bits(without.dx, with.dx)) << target;
      EXPECT_TRUE(same_bits(without.d_gain, with.d_gain)) << target;
    }
  });
}

// Zhang & Sennrich 2019, section 4: the answer does not change when all of a row is multiplied.
TEST(LayerNorm, RmsDoesNotSeeTheScaleButTheMean) {
  const LayerNormOptions rms{.form = NormForm::rms, .epsilon = 1e-12};
  const Tensor weight = Tensor::full({4}, 1.0);
  const auto of = [&](std::vector<float> row) { return layer_norm(Tensor::from({1, 4}, row), weight, {}, rms); };
  EXPECT_LT(relative_error(of({1000, 2000, -3000, 500}), of({1, 2, -3, 0.5f})), 1e-6);
  EXPECT_LT(relative_error(of({5, 5, 5, 5}).reshape({4}), weight), 1e-6);  // layer normalisation gives zeros
}

TEST(LayerNorm, Float32GradientsAgreeWithFloat64OnEveryTarget) {
  const Tensor x = normal({300, 130}, {.seed = 1});
  for (const LayerNormOptions& options : kForms) {
    const Gradient expected = run(x, options);
    for_each_target([&](const char* target) {
      const Gradient found = run(x.to(DType::f32), options);
      EXPECT_LT(relative_error(found.dx, expected.dx), 2e-6) << target;
      EXPECT_LT(relative_error(found.d_gain, expected.d_gain), 2e-6) << target;
      if (found.d_bias.defined()) {
        EXPECT_LT(relative_error(found.d_bias, expected.d_bias), 2e-6) << target;
      }
    });
  }
}

TEST(LayerNorm, ThreadsDoNotChangeIt) {
  const Tensor x = normal({1000, 96}, {.dtype = DType::f32});
  for (const LayerNormOptions& options : kForms) {
    const auto [one, two] = with_one_and_two_threads([&] { return run(x, options); });
    EXPECT_TRUE(same_bits(one.y, two.y));
    EXPECT_TRUE(same_bits(one.dx, two.dx));
    EXPECT_TRUE(same_bits(one.d_gain, two.d_gain));
    if (one.d_bias.defined()) {
      EXPECT_TRUE(same_bits(one.d_bias, two.d_bias));
    }
  }
}

TEST(LayerNorm, ConstantRowsGiveTheBiasAndFiniteGradients) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const double value : {0.0, 1.0, 1000.1, -3e-20}) {
      for (const LayerNormOptions& options : kForms) {
        for (const int64_t d : {1, 3, 512}) {
          const Gradient found = run(Tensor::full({2, d}, value, {.dtype = dtype}), options);
          const Tensor bias = random_bias(d, options, {.dtype = dtype, .seed = 5});
          if (bias.defined()) {
            EXPECT_LT(relative_error(found.y.rows(1, 2).reshape({d}), bias), 1e-4) << value << " " << d;
          }
          EXPECT_EQ(first_not_finite(found.y), -1) << value << " " << d;
          EXPECT_EQ(first_not_finite(found.dx), -1) << value << " " << d;
          EXPECT_EQ(first_not_finite(found.d_gain), -1);
        }
      }
    }
  }
}

TEST(LayerNorm, RowsHaveMeanZeroAndDeviationOne) {
  rc::check([] {
    const auto d = *rc::gen::inRange<int64_t>(8, 300);
    const LayerNormOptions options = kForms[*rc::gen::inRange(0, 3)];
    const double mean = *rc::gen::inRange(-50, 50);
    const double deviation = *rc::gen::inRange(1, 20);
    const Tensor x = normal(
        {4, d}, {.dtype = DType::f32, .seed = *rc::gen::arbitrary<uint64_t>(), .mean = mean, .deviation = deviation});
    const Tensor y = layer_norm(x, Tensor::full({d}, 1), {}, options);
    for (int64_t row = 0; row < 4; ++row) {
      double sum = 0, squares = 0;
      for (const float v : y.rows(row, row + 1).values<float>()) {
        sum += v;
        squares += static_cast<double>(v) * v;
      }
      const auto n = static_cast<double>(options.form == NormForm::unbiased_std ? d - 1 : d);
      if (options.form != NormForm::rms) RC_ASSERT(std::abs(sum / static_cast<double>(d)) < 1e-4);
      RC_ASSERT(std::abs(squares / n - 1) < 1e-3);
    }
  });
}

// 128, 256, ... 1024 columns have kernels of their own; 9 rows leave warps without one.
TEST(LayerNorm, DevicesAgreeOnEveryWidth) {
  using Inputs = std::vector<Tensor>;
  for (const int64_t d : {128, 130, 256, 768, 1024, 1152}) {
    for (const LayerNormOptions& options : kForms) {
      Inputs inputs;
      for (const Shape& shape : {Shape{9, d}, Shape{9, d}, Shape{d}, Shape{d}})
        inputs.push_back(normal(shape, {.dtype = DType::f32, .seed = inputs.size() + 1, .mean = 0.5}));
      const bool biased = options.form != NormForm::rms;
      const auto bias = [&](const Inputs& t) { return biased ? t[3] : Tensor{}; };
      const auto alone = [&](const Inputs& t) { return layer_norm(t[0], t[2], bias(t), options); };
      const auto without_bias = [&](const Inputs& t) { return layer_norm(t[0], t[2], {}, options); };
      EXPECT_LT(device_error(alone, inputs), 5e-6) << d;
      EXPECT_LT(device_error(without_bias, inputs), 5e-6) << d;
      for (const DropoutMask& mask : {kMask, DropoutMask{}}) {
        const auto fused = [&](const Inputs& t) {
          return residual_dropout_layer_norm(t[0], t[1], mask, t[2], bias(t), options);
        };
        EXPECT_LT(device_error(fused, inputs), 5e-6) << d << " " << mask.probability;
      }
    }
  }
}

// Without a tape no sum and no statistics are kept.
TEST(LayerNorm, DevicesFindTheBiasInConstantRows) {
  for (const Device& device : devices_under_test()) {
    for (const LayerNormOptions& options : kForms) {
      if (options.form == NormForm::rms) continue;
      for (const int64_t d : {130, 768}) {
        const Tensor x = Tensor::full({9, d}, 1000.1, {DType::f32, device}),
                     y = Tensor::zeros({9, d}, {DType::f32, device});
        const Tensor weight = Tensor::full({d}, 1, {DType::f32, device});
        const Tensor bias = normal({d}, {.dtype = DType::f32, .seed = 5}), there = bias.to(device);
        for (const Tensor& out :
             {layer_norm(x, weight, there, options), residual_dropout_layer_norm(x, y, {}, weight, there, options)})
          EXPECT_LT(relative_error(out.rows(8, 9).reshape({d}).to(Cpu{}), bias), 1e-4) << d;
      }
    }
  }
}

TEST(LayerNorm, NamesWhatDoesNotFit) {
  try {
    layer_norm(normal({3, 5}), normal({4}), normal({5}));
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "layer_norm: input is float64 [3, 5] with 5 columns but weight is float64 [4]");
  }
  EXPECT_EQ(message_of<ShapeError>([] {
              layer_norm(normal({3, 5}), normal({5}), normal({5}), {.form = NormForm::rms});
            }),
            "layer_norm: the rms form takes no bias, found one of shape [5]");
  EXPECT_THROW(layer_norm(normal({3, 5}), normal({5}), normal({5}), {.epsilon = 0}), ConfigError);
  EXPECT_THROW(layer_norm(normal({3, 5}), {}, normal({5})), ShapeError);
  EXPECT_THROW(layer_norm(normal({3, 5}), normal({5}), normal({5}, {.dtype = DType::f32})), ShapeError);
  EXPECT_THROW(residual_dropout_layer_norm(normal({3, 5}), normal({3, 4}), {}, normal({5}), normal({5})), ShapeError);
}

}  // namespace
}  // namespace attune

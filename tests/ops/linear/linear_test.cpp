#include "attune/ops/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/kernels/cpu/gemm/onednn_matmul.h"
#include "attune/ops/activation.h"
#include "attune/ops/linear/matmul.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "tests/ops/activations.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/run_command.h"

namespace attune {
namespace {

// One number at a time.
Tensor reference(const Tensor& x, const Tensor& w, const Tensor& b, Activation activation) {
  Tensor y = Tensor::empty({x.size(0), w.size(0)}, {.dtype = DType::f64});
  const Tensor x64 = x.to(DType::f64), w64 = w.to(DType::f64);
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t o = 0; o < w.size(0); ++o) {
      double sum = b.defined() ? b.to(DType::f64).data<double>()[o] : 0;
      for (int64_t c = 0; c < x.size(1); ++c)
        sum += x64.data<double>()[i * x.size(1) + c] * w64.data<double>()[o * x.size(1) + c];
      if (activation == Activation::relu) sum = std::max(sum, 0.0);
      if (activation == Activation::gelu) sum *= 0.5 * (1 + std::erf(sum / std::numbers::sqrt2));
      if (activation == Activation::gelu_tanh)
        sum *= 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (sum + 0.044715 * sum * sum * sum)));
      if (activation == Activation::gelu_sigmoid) sum /= 1 + std::exp(-1.702 * sum);
      if (activation == Activation::silu) sum /= 1 + std::exp(-sum);
      if (activation == Activation::tanh) sum = std::tanh(sum);
      y.data<double>()[i * w.size(0) + o] = sum;
    }
  }
  return y;
}

TEST(Linear, GradientMatchesFiniteDifferences) {
  for (const Activation activation : kActivations) {
    EXPECT_LT(gradient_error([=](const std::vector<Tensor>& t) { return linear(t[0], t[1], t[2], activation); },
                             {normal({5, 4}, {.seed = 1}), normal({3, 4}, {.seed = 2}), normal({3}, {.seed = 3})}),
              1e-7);
  }
  EXPECT_LT(gradient_error([](const std::vector<Tensor>& t) { return linear(t[0], t[1]); },
                           {normal({2, 3, 4}, {.seed = 1}), normal({6, 4}, {.seed = 2})}),
            1e-7);
}

TEST(Linear, AgreesWithTheFormula) {
  for (const Activation activation : kActivations) {
    for (const int64_t rows : {1, 7, 64, 130}) {
      const Tensor x = normal({rows, 40}, {.dtype = DType::f32, .seed = 4});
      Tensor w = normal({33, 40}, {.dtype = DType::f32, .seed = 5});
      const Tensor b = normal({33}, {.dtype = DType::f32, .seed = 6});
      const Tensor expected = reference(x, w, b, activation);
      const auto in_epilogue = [&] {
        const NoGrad no_grad;
        return linear(x, w, b, activation);
      };
      EXPECT_LT(relative_error(in_epilogue().to(DType::f64), expected), 2e-6);
      require_gradient(w);  // a recorded step takes another way with all but ReLU
      EXPECT_LT(relative_error(linear(x, w, b, activation).to(DType::f64), expected), 2e-6);
    }
  }
}

std::shared_ptr<const PanelWeight> int8(const Tensor& weight) {
  return std::make_shared<const PanelWeight>(PanelWeight::lay_out(weight, WeightFormat::int8));
}

// The float32 weights of what is quantised.
std::vector<LinearParameters> widened(const std::vector<LinearParameters>& parameters) {
  std::vector<LinearParameters> all = parameters;
  for (LinearParameters& p : all)
    if (p.quantised) p = {.weight = p.quantised->to_matrix(), .bias = p.bias};
  return all;
}

std::vector<LinearParameters> one_quantised_beside_a_trained_one() {
  Tensor trained = normal({4, 24}, {.dtype = DType::f32, .seed = 3});
  require_gradient(trained);
  return {{.weight = {}, .bias = {}, .quantised = int8(normal({20, 24}, {.dtype = DType::f32, .seed = 2}))},
          {.weight = trained, .bias = {}}};
}

TEST(Linear, QuantisedIsTheProductWithTheWidenedMatrixBitForBit) {
  for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const auto quantised = one_quantised_beside_a_trained_one();
    const auto run = [&](const std::vector<LinearParameters>& parameters) {
      const ProductPrecisionScope scope(precision);
      Tensor x = normal({7, 24}, {.dtype = DType::f32, .seed = 1});
      require_gradient(x);
      clear_gradient(parameters[1].weight);
      const Tensor y = fused_linear(x, parameters);
      backward(y, normal({7, 24}, {.dtype = DType::f32, .seed = 4}));
      return std::vector<Tensor>{y.detach(), gradient(x), gradient(parameters[1].weight)};
    };
    const auto found = run(quantised), expected = run(widened(quantised));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
  }
}

TEST(Linear, GradientOfAQuantisedProductMatchesFiniteDifferences) {
  const auto weight = int8(normal({3, 4}, {.dtype = DType::f32, .seed = 2}));
  EXPECT_LT(gradient_error(
                [&](const std::vector<Tensor>& t) {
                  const LinearParameters parameters{.weight = {}, .bias = t[1], .quantised = weight};
                  return fused_linear(t[0], {&parameters, 1});
                },
                {normal({5, 4}, {.seed = 1}), normal({3}, {.seed = 3})}),
            1e-7);
}

// The widened matrix of 4 MiB is there while it is multiplied, and not from the forward to the backward pass.
TEST(Linear, AQuantisedProductKeepsNoWidenedMatrix) {
  const LinearParameters parameters{
      .weight = {}, .bias = {}, .quantised = int8(normal({1024, 1024}, {.dtype = DType::f32, .seed = 2}))};
  Tensor x = normal({2, 1024}, {.dtype = DType::f32, .seed = 1});
  require_gradient(x);
  const int64_t before = allocator_statistics().bytes_in_use;
  const Tensor y = fused_linear(x, {&parameters, 1});
  EXPECT_LT(allocator_statistics().bytes_in_use - before, 1 << 20);
  backward(y, normal({2, 1024}, {.dtype = DType::f32, .seed = 4}));
  EXPECT_LT(allocator_statistics().bytes_in_use - before, 1 << 20);
}

TEST(Linear, SaysWhatDoesNotFitAQuantisedWeight) {
  const LinearParameters parameters{
      .weight = {}, .bias = {}, .quantised = int8(normal({3, 4}, {.dtype = DType::f32, .seed = 2}))};
  EXPECT_EQ(message_of<ShapeError>([&] {
              fused_linear(Tensor::zeros({2, 5}), {&parameters, 1});
            }),
            "linear: input [2, 5] for a weight [3, 4] in int8");
}

Tensor separate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::gelu_sigmoid:
      return gelu_sigmoid(x);
    case Activation::silu:
      return silu(x);
    case Activation::tanh:
      return tanh(x);
    case Activation::none:
      break;
  }
  return x;
}

// Over all magnitudes, in a product's epilogue, in float64 and where a product without terms leaves the bias alone.
TEST(Linear, EpiloguesEqualAPassOfTheirOwn) {
  const NoGrad no_grad;  // else the activation is a pass of its own
  const std::vector<float> values{INFINITY, -INFINITY, 0,    1e-30f, 1,      -1,    3,      -3,    10,
                                  -10,      100,       -100, 1e10f,  -1e10f, 1e30f, -1e30f, 3e38f, -3e38f};
  const auto n = static_cast<int64_t>(values.size());
  for (const Activation activation : kActivations) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor v = Tensor::from({n}, values).to(dtype);
      const Tensor expected = separate(activation, v).to(DType::f64);
      const Tensor one = Tensor::full({1, 1}, 1.0, {.dtype = dtype});
      const Tensor products[] = {
          linear(one, v.reshape({n, 1}), {}, activation),
          linear(Tensor::empty({1, 0}, {.dtype = dtype}), Tensor::empty({n, 0}, {.dtype = dtype}), v, activation)};
      for (const Tensor& product : products) {
        const Tensor found = product.to(DType::f64);
        for (int64_t i = 0; i < n; ++i) {
          const double y = found.data<double>()[i], wanted = expected.data<double>()[i];
          // The epilogue of oneDNN 3 adds x and x erf(x / sqrt 2) before it halves them.
          const bool may_overflow = activation == Activation::gelu && dtype == DType::f32 && wanted > 1.7e38;
          if (may_overflow && !std::isfinite(y)) continue;
          if (std::isfinite(wanted)) {
            EXPECT_NEAR(y, wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << values[static_cast<size_t>(i)];
          } else {
            EXPECT_TRUE(std::isnan(wanted) ? std::isnan(y) : y == wanted) << values[static_cast<size_t>(i)];
          }
        }
      }
    }
  }
}

TEST(Linear, SmoothActivationsKeepNaN) {
  const NoGrad no_grad;
  const Tensor one = Tensor::full({1, 1}, 1.0), broken = Tensor::full({20, 1}, NAN);
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::gelu_sigmoid, Activation::silu, Activation::tanh})
    for (const float y : linear(one, broken, {}, activation).values<float>()) EXPECT_TRUE(std::isnan(y));
}

TEST(Linear, GradientsInFloat32AgreeWithFloat64) {
  for (const Activation activation : kActivations) {
    auto gradients = [&](DType dtype) {
      std::vector<Tensor> t{normal({90, 48}, {.seed = 1}).to(dtype), normal({64, 48}, {.seed = 2}).to(dtype),
                            normal({64}, {.seed = 3}).to(dtype)};
      for (Tensor& x : t) require_gradient(x);
      backward(linear(t[0], t[1], t[2], activation), normal({90, 64}, {.seed = 4}).to(dtype));
      return std::vector<Tensor>{gradient(t[0]).to(DType::f64), gradient(t[1]).to(DType::f64),
                                 gradient(t[2]).to(DType::f64)};
    };
    const auto f32 = gradients(DType::f32), f64 = gradients(DType::f64);
    for (size_t i = 0; i < 3; ++i) EXPECT_LT(relative_error(f32[i], f64[i]), 1e-5) << i;
  }
}

// A batch never changes an answer: a row's result is the same whatever other rows are there.
TEST(Linear, RowsDoNotDependOnTheBatch) {
  const Tensor w = normal({512, 128}, {.dtype = DType::f32, .seed = 2});
  const Tensor x = normal({1100, 128}, {.dtype = DType::f32, .seed = 3});
  const Tensor all = linear(x, w);
  for (const int64_t rows : {1, 2, 5, 7, 33, 64, 500, 1099})
    EXPECT_TRUE(same_bits(linear(x.rows(0, rows), w), all.rows(0, rows))) << rows;
}

TEST(Linear, SameBitsForEveryThreadCount) {
  auto run = [](int n) {
    const ThreadScope threads(n);
    std::vector<Tensor> t{normal({300, 64}, {.dtype = DType::f32, .seed = 1}),
                          normal({96, 64}, {.dtype = DType::f32, .seed = 2}),
                          normal({96}, {.dtype = DType::f32, .seed = 3})};
    for (Tensor& x : t) require_gradient(x);
    const Tensor y = linear(t[0], t[1], t[2], Activation::relu);
    backward(y);
    return std::vector<Tensor>{y.detach(), gradient(t[0]), gradient(t[1]), gradient(t[2])};
  };
  const auto one = run(1), two = run(2);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

TEST(Linear, EmptyBatch) {
  Tensor w = normal({3, 4}, {.dtype = DType::f32}), b = normal({3}, {.dtype = DType::f32});
  require_gradient(w);
  require_gradient(b);
  const Tensor y = linear(Tensor::empty({0, 4}), w, b);
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  backward(y);
  for (const float g : gradient(w).values<float>()) EXPECT_EQ(g, 0.0f);
}

TEST(Linear, ErrorsNameBothShapes) {
  const Tensor x = Tensor::zeros({37, 512});
  EXPECT_EQ(message_of<ShapeError>([&] {
              linear(x, Tensor::zeros({2048, 256}));
            }),
            "linear: input [37, 512] has 512 columns but weight [2048, 256] takes 256");
  EXPECT_EQ(message_of<ShapeError>([&] {
              linear(x, Tensor::zeros({8, 512}), Tensor::zeros({9}));
            }),
            "linear: weight [8, 512] gives 8 columns but bias has shape [9]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              linear(x, Tensor::zeros({8, 512}), Tensor::zeros({8}, {.dtype = DType::f64}));
            }),
            "linear: bias is float64, an input in float32 needs float32");
}

TEST(LinearSideBySide, GradientMatchesFiniteDifferences) {
  const auto of_three = [](const std::vector<Tensor>& t) {
    return fused_linear(t[0], std::vector<LinearParameters>{{t[1], t[4]}, {t[2], t[5]}, {t[3], t[6]}});
  };
  EXPECT_LT(gradient_error(of_three, {normal({5, 4}, {.seed = 1}), normal({3, 4}, {.seed = 2}),
                                      normal({2, 4}, {.seed = 3}), normal({6, 4}, {.seed = 4}),
                                      normal({3}, {.seed = 5}), normal({2}, {.seed = 6}), normal({6}, {.seed = 7})}),
            1e-7);
  const auto of_two = [](const std::vector<Tensor>& t) {
    return fused_linear(t[0], std::vector<LinearParameters>{{t[1], {}}, {t[2], {}}});
  };
  EXPECT_LT(gradient_error(of_two, {normal({5, 4}, {.seed = 1}), normal({3, 4}, {.seed = 2}), normal({2, 4})}), 1e-7);
}

// Rows of one tensor are not copied, and give the same numbers as parameters of their own.
TEST(LinearSideBySide, AdjacentParametersAreReadInPlace) {
  const Tensor x = normal({9, 8}, {.dtype = DType::f32, .seed = 1});
  const Tensor weights = normal({12, 8}, {.dtype = DType::f32, .seed = 2});
  const Tensor biases = normal({12}, {.dtype = DType::f32, .seed = 3});
  const Tensor dy = normal({9, 12}, {.dtype = DType::f32, .seed = 4});
  const auto run = [&](bool copied) {
    std::vector<LinearParameters> parameters;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 5}, {5, 6}, {6, 12}}) {
      Tensor w = weights.rows(begin, end), b = biases.rows(begin, end);
      if (copied) w = w.clone(), b = b.clone();
      require_gradient(w);
      require_gradient(b);
      parameters.push_back({w, b});
    }
    const Tensor y = fused_linear(x, parameters);
    backward(y, dy);
    std::vector<Tensor> results{y.detach()};
    for (const auto& [w, b, quantised] : parameters) {
      EXPECT_EQ(gradient(w).shape(), w.shape());
      results.insert(results.end(), {gradient(w), gradient(b)});
    }
    return results;
  };
  const auto in_place = run(false), copied = run(true);
  for (size_t i = 0; i < copied.size(); ++i) EXPECT_TRUE(same_bits(in_place[i], copied[i])) << i;
  for (int64_t row = 0; row < 9; ++row)
    for (int64_t column : {0, 5, 11})
      EXPECT_NEAR(in_place[0].data<float>()[row * 12 + column],
                  linear(x, weights, biases).data<float>()[row * 12 + column], 1e-5);
}

TEST(LinearSideBySide, NamesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({2, 4}), w = Tensor::zeros({3, 4}), b = Tensor::zeros({3});
  const auto message = [&](const std::vector<LinearParameters>& parameters) {
    return message_of<ShapeError>([&] { fused_linear(x, parameters); });
  };
  EXPECT_EQ(message({}), "fused_linear: takes 1 to 3 weights, found 0");
  EXPECT_EQ(message({{w, b}, {w, {}}}), "fused_linear: either every weight has a bias or none has");
  EXPECT_EQ(message({{w, b}, {Tensor::zeros({3, 5}), b}}),
            "linear: input [2, 4] has 4 columns but weight [3, 5] takes 5");
}

// The gradient behind a ReLU needs no mask, that of other activations does; either way it is that of the parts.
TEST(Linear, DropoutIsThatOfTheOperation) {
  const DropoutMask mask{.probability = 0.4, .seed = 3, .step = 2, .op = 1};
  const Tensor dy = normal({70, 33}, {.dtype = DType::f32, .seed = 9});
  for (const Activation activation : kActivations) {
    const auto run = [&](bool fused) {
      std::vector<Tensor> t{normal({70, 8}, {.dtype = DType::f32, .seed = 1}),
                            normal({33, 8}, {.dtype = DType::f32, .seed = 2}),
                            normal({33}, {.dtype = DType::f32, .seed = 3})};
      for (Tensor& leaf : t) require_gradient(leaf);
      const Tensor y = fused ? linear(t[0], t[1], t[2], {.activation = activation, .dropout = mask})
                             : dropout(linear(t[0], t[1], t[2], activation), mask);
      backward(y, dy);
      return std::vector<Tensor>{y.detach(), gradient(t[0]), gradient(t[1]), gradient(t[2])};
    };
    const auto fused = run(true), parts = run(false);
    for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(same_bits(fused[i], parts[i])) << i;
  }
}

TEST(Linear, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<Tensor> t{normal({2, 9, 8}, {.dtype = dtype, .seed = 1}),
                                normal({33, 8}, {.dtype = dtype, .seed = 2}),
                                normal({33}, {.dtype = dtype, .seed = 3})};
    for (const Activation activation : kActivations) {
      for (const double dropped : {0.0, 0.4}) {
        const LinearOptions options{.activation = activation, .dropout = {.probability = dropped, .seed = 3}};
        const auto with_bias = [&](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2], options); };
        EXPECT_LT(device_error(with_bias, t), device_tolerance(dtype)) << static_cast<int>(activation) << dropped;
        const NoGrad no_grad;  // the activation is in the product's epilogue then
        for (const Device& device : devices_under_test())
          EXPECT_LT(relative_error(with_bias(copies_on(device, t)), with_bias(t)), device_tolerance(dtype));
      }
    }
    EXPECT_LT(device_error([](const std::vector<Tensor>& x) { return linear(x[0], x[1]); }, t),
              device_tolerance(dtype));
    EXPECT_LT(device_error(
                  [](const std::vector<Tensor>& x) {
                    return linear(x[0].reshape({-1, 8}).rows(0, 0), x[1]);
                  },
                  t),
              device_tolerance(dtype));
  }
}

TEST(LinearSideBySide, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto random = [&](const Shape& shape, uint64_t seed) {
      return normal(shape, {.dtype = dtype, .seed = seed});
    };
    const std::vector<Tensor> t{random({7, 8}, 1), random({5, 8}, 2), random({6, 8}, 3), random({5}, 4),
                                random({6}, 5)};
    const auto of_two = [](const std::vector<Tensor>& x) {
      return fused_linear(x[0], std::vector<LinearParameters>{{x[1], x[3]}, {x[2], x[4]}});
    };
    EXPECT_LT(device_error(of_two, t), device_tolerance(dtype));
  }
}

TEST(Linear, RefusesTensorsOfTwoDevices) {
  const Tensor x = Tensor::zeros({2, 4}), w = Tensor::zeros({3, 4});
  EXPECT_THROW(linear(x, w.to(Plain{})), ShapeError);
  EXPECT_THROW(linear(x, w, Tensor::zeros({3}, {.device = Plain{}})), ShapeError);
  EXPECT_THROW(matmul(x, w.to(Plain{}), {.transpose_b = true}), ShapeError);
}

// Without AVX-512, or without oneDNN, the products of training are panel_matmul's.
TEST(Linear, WithoutAvx512TheSameTestsPass) {
  if (!cpu::has_onednn_float32()) GTEST_SKIP() << "that is what all of them just did";
  expect_passes_without_avx512("Linear*-*WithoutAvx512*");
}

}  // namespace
}  // namespace attune

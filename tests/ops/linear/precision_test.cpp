#include "attune/ops/linear/precision.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/kernels/bfloat16.h"
#include "attune/kernels/cpu/gemm/onednn_matmul.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/gated_activation.h"
#include "attune/ops/layer_norm.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/matmul.h"
#include "attune/ops/linear/segment_linear.h"
#include "attune/ops/residual.h"
#include "attune/tensor/buffer.h"
#include "tests/ops/activations.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/run_command.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

// Of 8 bits of precision: half a unit in the last place, and the sums of a few dozen such errors.
constexpr double kRounding = 1.0 / 256;
constexpr double kLoose = 4 * kRounding;

Tensor random32(const Shape& shape, uint64_t seed) {
  return normal(shape, {.dtype = DType::f32, .seed = seed});
}
Tensor rounded(const Tensor& x) {
  return to_float32(to_bfloat16(x));
}
Tensor wide(const Tensor& x) {
  return x.to(DType::f64);
}

TEST(Bfloat16, RoundsToTheNearest) {
  EXPECT_EQ(float(bfloat16(1.0)), 1.0f);
  EXPECT_EQ(float(bfloat16(1.0 + 1.0 / 256)), 1.0f);              // a tie goes to the even one, downwards ...
  EXPECT_EQ(float(bfloat16(1.0 + 3.0 / 256)), 1.0f + 1.0f / 64);  // ... and upwards
  EXPECT_EQ(float(bfloat16(1.0 + 1.01 / 256)), 1.0f + 1.0f / 128);
  EXPECT_EQ(float(bfloat16(-3e38)), -3.0040553e38f);
  EXPECT_EQ(float(bfloat16(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(float(bfloat16(std::bit_cast<float>(0x7f800001u)))));  // whose upper half is infinity's
}

TEST(Bfloat16, EveryTargetConvertsAlike) {
  std::mt19937 random(1);
  std::vector<float> x(1003);
  for (float& value : x) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
  x[0] = INFINITY;
  x[1] = std::bit_cast<float>(0x7f800001u);
  x[2] = 1.0f + 1.0f / 256;
  x[3] = -0.0f;
  const auto n = static_cast<int64_t>(x.size());
  const Tensor from = Tensor::from({n}, x);
  for_each_target([&](const char* target) {
    const Tensor all = Tensor::zeros({n + 1}, {.dtype = DType::bf16}), y = all.rows(0, n), back = Tensor::empty({n});
    to_bfloat16(Cpu{}, from, y);
    widen(Cpu{}, y, back);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y.data<bfloat16>()[i].bits, bfloat16(x[i]).bits) << target << " " << i << " " << x[i];
      ASSERT_EQ(std::bit_cast<uint32_t>(back.data<float>()[i]), uint32_t{y.data<bfloat16>()[i].bits} << 16)
          << target << " " << i;
    }
    EXPECT_EQ(all.data<bfloat16>()[n].bits, 0) << target;
  });
  for (const Device& device : devices_under_test()) {
    const Tensor found = to_bfloat16(from.to(device));
    EXPECT_TRUE(same_bits(found.to(Cpu{}), to_bfloat16(from))) << device.text();
    EXPECT_TRUE(same_bits(to_float32(found).to(Cpu{}), to_float32(to_bfloat16(from)))) << device.text();
  }
}

struct LinearResult {
  Tensor y, dx, d_weight, d_bias;
};

LinearResult run(const Tensor& x_in, const Tensor& w_in, const Tensor& b_in, const Tensor& cotangent,
                 const LinearOptions& options, ProductPrecision precision) {
  const ProductPrecisionScope scope(precision);
  Tensor x = x_in.detach(), w = w_in.detach(), b = b_in.detach();
  for (Tensor* leaf : {&x, &w, &b}) require_gradient(*leaf);
  const Tensor y = linear(x, w, b, options);
  backward(y, cotangent);
  return {y.detach(), gradient(x), gradient(w), gradient(b)};
}

// Sums in float32 of the rounded numbers are those of float64 up to rounding of float32.
TEST(Bfloat16Products, AreThoseOfTheRoundedNumbers) {
  for (const int64_t rows : {1, 7, 64, 130}) {
    const Tensor x = random32({rows, 40}, 1), w = random32({33, 40}, 2), b = random32({33}, 3);
    const Tensor cotangent = random32({rows, 33}, 4);
    const LinearResult found = run(x, w, b, cotangent, {}, ProductPrecision::bfloat16);
    EXPECT_EQ(found.y.dtype(), DType::f32);
    EXPECT_EQ(found.dx.dtype(), DType::f32);
    const Tensor x_64 = wide(rounded(x)), w_64 = wide(rounded(w)), dy_64 = wide(rounded(cotangent));
    EXPECT_LT(relative_error(wide(found.y), linear(x_64, w_64, wide(b))), 1e-6) << rows;
    EXPECT_LT(relative_error(wide(found.dx), matmul(dy_64, w_64)), 1e-6) << rows;
    EXPECT_LT(relative_error(wide(found.d_weight), matmul(dy_64, x_64, {.transpose_a = true})), 1e-6) << rows;
    const Tensor ones = Tensor::full({1, rows}, 1, {.dtype = DType::f64});
    EXPECT_LT(relative_error(wide(found.d_bias), matmul(ones, wide(cotangent)).reshape({33})), 1e-6) << rows;
  }
}

TEST(Bfloat16Products, AgreeWithFloat64AsFarAsTheirPrecisionGoes) {
  const Tensor x = random32({50, 40}, 1), b = random32({24}, 3);
  const Tensor w = normal({24, 40}, {.dtype = DType::f32, .seed = 2, .deviation = 0.15});  // outputs near 1
  const Tensor cotangent = random32({50, 24}, 4);
  for (const Activation activation : kActivations) {
    for (const bool dropout : {false, true}) {
      LinearOptions options{.activation = activation};
      if (dropout) options.dropout = {.probability = 0.3, .seed = 5};
      const LinearResult exact =
          run(wide(x), wide(w), wide(b), wide(cotangent), options, ProductPrecision::bfloat16);  // float64 as it is
      for (const bool bf16_output : {false, true}) {
        options.bf16_output = bf16_output;
        const LinearResult found = run(x, w, b, cotangent, options, ProductPrecision::bfloat16);
        EXPECT_EQ(found.y.dtype(), bf16_output ? DType::bf16 : DType::f32);
        EXPECT_LT(relative_error(wide(found.y), exact.y), kLoose);
        // The slope of a ReLU jumps where the sum is almost 0: single gradients may be wrong by their whole size.
        if (activation == Activation::relu) continue;
        EXPECT_LT(relative_error(wide(found.dx), exact.dx), kLoose);
        EXPECT_LT(relative_error(wide(found.d_weight), exact.d_weight), kLoose);
        EXPECT_LT(relative_error(wide(found.d_bias), exact.d_bias), kLoose);
      }
      const LinearResult plain = run(x, w, b, cotangent, options, ProductPrecision::float32);
      EXPECT_EQ(plain.y.dtype(), DType::f32);  // bf16_output results are for bfloat16 products alone
    }
  }
}

// linear_1, a gated unit or a ReLU, dropout and linear_2 between a norm and a residual connection, all in bfloat16.
Tensor sublayer(const std::vector<Tensor>& t, bool gated, bool pre_norm) {
  const Tensor &x = t[0], &gain = t[1], &w_1 = t[2], &b_1 = t[3], &w_2 = t[4], &b_2 = t[5];
  const DropoutMask mask{.probability = 0.2, .seed = 9};
  const Tensor normal = pre_norm ? layer_norm(x, gain, {}, {.for_products = true}) : x;
  Tensor hidden =
      linear(normal, w_1, b_1, {.activation = gated ? Activation::none : Activation::gelu, .bf16_output = true});
  if (gated) hidden = dropout(gated_activation(hidden, Activation::silu), mask);
  const Tensor y = linear(hidden, w_2, b_2, {.bf16_output = true});
  if (bfloat16_products() && x.dtype() == DType::f32) {
    EXPECT_EQ(hidden.dtype(), DType::bf16);
    EXPECT_EQ(y.dtype(), DType::bf16);
  }
  return pre_norm ? residual_dropout(x, y, mask) : residual_dropout_layer_norm(x, y, mask, gain, {});
}

TEST(Bfloat16Products, ASublayerAgreesWithFloat64) {
  for (const bool gated : {false, true}) {
    for (const bool pre_norm : {false, true}) {
      const int64_t hidden = gated ? 12 : 24;
      const std::vector<Tensor> inputs = {random32({30, 16}, 1), random32({16}, 2),         random32({24, 16}, 3),
                                          random32({24}, 4),     random32({16, hidden}, 5), random32({16}, 6)};
      const Tensor cotangent = random32({30, 16}, 7);
      const auto gradients = [&](DType dtype) {
        const ProductPrecisionScope scope(ProductPrecision::bfloat16);
        std::vector<Tensor> leaves;
        for (const Tensor& input : inputs) require_gradient(leaves.emplace_back(input.to(dtype)));
        const Tensor y = sublayer(leaves, gated, pre_norm);
        backward(y, cotangent.to(dtype));
        std::vector<Tensor> results{y.detach()};
        for (const Tensor& leaf : leaves) results.push_back(gradient(leaf));
        return results;
      };
      const auto exact = gradients(DType::f64), found = gradients(DType::f32);
      for (size_t i = 0; i < exact.size(); ++i) {
        EXPECT_EQ(found[i].dtype(), DType::f32);
        EXPECT_LT(relative_error(wide(found[i]), exact[i]), 2 * kLoose) << gated << pre_norm << i;
      }
    }
  }
}

TEST(Bfloat16Products, ASharedInputGathersItsGradientInFloat32) {
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  Tensor x = random32({20, 16}, 1);
  require_gradient(x);
  const Tensor shared = for_products(x);
  EXPECT_EQ(shared.dtype(), DType::bf16);
  Tensor sum = random32({20, 8}, 2), expected = Tensor::zeros({20, 16});
  const Tensor dy = random32({20, 8}, 3);
  for (uint64_t i = 0; i < 3; ++i) {
    const Tensor w = random32({8, 16}, 10 + i);
    sum = residual_dropout(sum, linear(shared, w));
    add_in_place(expected, matmul(dy, w));
  }
  backward(sum, dy);
  EXPECT_EQ(gradient(x).dtype(), DType::f32);
  EXPECT_LT(relative_error(wide(gradient(x)), wide(expected)), kLoose);
}

TEST(Bfloat16Products, LossAndItsGradientsAgreeWithFloat64) {
  const Tensor x = random32({70, 24}, 1), w = random32({50, 24}, 2), b = random32({50}, 3);
  const Indices drawn = uniform_ids(70, 50, 4);
  std::vector<int32_t> values(drawn.values().begin(), drawn.values().end());
  values[3] = -1;
  const Indices labels = values;
  const auto run_loss = [&](DType dtype, bool with_gradients) {
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    std::vector<Tensor> leaves{x.to(dtype), w.to(dtype), b.to(dtype)};
    if (with_gradients)
      for (Tensor& leaf : leaves) require_gradient(leaf);
    const CrossEntropy result = linear_cross_entropy(leaves[0], leaves[1], leaves[2], labels, {.label_smoothing = 0.1});
    std::vector<Tensor> all{result.loss.detach()};
    if (with_gradients) {
      backward(result.loss);
      for (const Tensor& leaf : leaves) all.push_back(gradient(leaf));
    }
    return all;
  };
  const auto exact = run_loss(DType::f64, true), found = run_loss(DType::f32, true);
  EXPECT_LT(relative_error(wide(found[0]), exact[0]), kRounding);
  for (size_t i = 1; i < 4; ++i) EXPECT_LT(relative_error(wide(found[i]), exact[i]), 2 * kLoose) << i;
  EXPECT_TRUE(same_bits(run_loss(DType::f32, false)[0], found[0]));
}

// Sums are rounded to bfloat16 at the same places, but may fall on either side of a tie. A GPU rounds the bias, too.
TEST(Bfloat16Products, AreTheSameOnEveryDevice) {
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  const Tensor w = normal({24, 40}, {.dtype = DType::f32, .seed = 2, .deviation = 0.15});
  const std::vector<Tensor> t{random32({50, 40}, 1), w, random32({24}, 3)};
  for (const Activation activation : kActivations) {
    for (const bool bf16_output : {false, true}) {
      const LinearOptions options{
          .activation = activation, .dropout = {.probability = 0.3, .seed = 5}, .bf16_output = bf16_output};
      if (activation == Activation::relu) {  // whose slope jumps where a sum is almost 0
        const auto y = [&](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2], options); };
        for (const Device& device : devices_under_test())
          EXPECT_LT(relative_error(y(copies_on(device, t)), y(t)), 2 * kRounding);  // cuBLASLt rounds the bias too
        continue;
      }
      EXPECT_LT(device_error([&](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2], options); }, t),
                kLoose)
          << static_cast<int>(activation) << bf16_output;
    }
  }
  const auto of_two = [](const std::vector<Tensor>& x) {
    return fused_linear(for_products(x[0]), std::vector<LinearParameters>{{x[1], x[2]}, {x[1], x[2]}});
  };
  EXPECT_LT(device_error(of_two, t), kLoose);
  const Indices labels = uniform_ids(50, 24);
  const auto loss = [&](const std::vector<Tensor>& x) {
    return linear_cross_entropy(x[0], x[1], x[2], labels, {.label_smoothing = 0.1}).loss;
  };
  EXPECT_LT(device_error(loss, t), kLoose);
}

TEST(Bfloat16Products, ParametersAreConvertedOncePerScope) {
  const Tensor x = random32({4, 8}, 1), w = random32({6, 8}, 2), other = random32({6, 8}, 3);
  Tensor before, after;
  {
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    before = linear(x, w);
    EXPECT_EQ(stacked_in_bfloat16({&w, 1}).address(), stacked_in_bfloat16({&w, 1}).address());
    {
      const ProductPrecisionScope inner(ProductPrecision::float32);
      EXPECT_FALSE(bfloat16_products());
    }
    EXPECT_TRUE(bfloat16_products());
  }
  EXPECT_FALSE(bfloat16_products());
  w.copy_from(other);
  {
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    after = linear(x, w);
    EXPECT_TRUE(same_bits(after, linear(x, other)));
  }
  EXPECT_FALSE(same_bits(after, before));
}

TEST(Bfloat16Products, CopiesWithMoreRowsAreKeptToo) {
  const Tensor w = random32({6, 8}, 2), in_bfloat16 = to_bfloat16(w),
               zeros = Tensor::zeros({2, 8}, {.dtype = DType::bf16});
  const auto expect_padded = [&](const Tensor& padded) {
    ASSERT_EQ(padded.shape(), (Shape{8, 8}));
    EXPECT_TRUE(same_bits(padded.rows(0, 6), in_bfloat16));
    EXPECT_TRUE(same_bits(padded.rows(6, 8), zeros));
  };
  expect_padded(stacked_in_bfloat16({&w, 1}, 8));
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  const Tensor plain = stacked_in_bfloat16({&w, 1}), padded = stacked_in_bfloat16({&w, 1}, 8);
  EXPECT_TRUE(same_bits(plain, in_bfloat16));
  expect_padded(padded);
  EXPECT_EQ(stacked_in_bfloat16({&w, 1}, 8).address(), padded.address());
  EXPECT_EQ(stacked_in_bfloat16({&w, 1}, 6).address(), plain.address()) << "which has so many";
  expect_padded(stacked_in_bfloat16({&in_bfloat16, 1}, 8));
}

TEST(Bfloat16Products, StacksThatBeginAlikeHaveCopiesOfTheirOwn) {
  const Tensor x = random32({4, 8}, 1), first = random32({6, 8}, 2), one = random32({6, 8}, 3),
               other = random32({6, 8}, 4);
  const auto beside_first = [&](const Tensor& weight) {
    return fused_linear(x,
                        std::vector<LinearParameters>{{.weight = first, .bias = {}}, {.weight = weight, .bias = {}}});
  };
  Tensor expected;
  {
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    expected = beside_first(other);
  }
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  beside_first(one);
  EXPECT_TRUE(same_bits(beside_first(other), expected));
}

// Results of all that reads weights: two matrices [24, 40] and a bias.
std::vector<Tensor> products_with(const Tensor& x, const Tensor& w, const Tensor& v, const Tensor& b) {
  const std::vector<LinearParameters> two = {{.weight = w, .bias = b}, {.weight = v, .bias = b}};
  const std::vector<int64_t> offsets = {0, 5, 12};
  const Indices labels = uniform_ids(12, 24, 4);
  std::vector<Tensor> results = {linear(x, w, b, Activation::relu),
                                 linear(x, w, b, LinearOptions{.activation = Activation::gelu, .bf16_output = true}),
                                 linear(to_bfloat16(x), w, b),
                                 fused_linear(x, two),
                                 fused_linear(x, {two.data(), 1}),
                                 segment_linear(x, offsets, two),
                                 linear_cross_entropy(x, w, b, labels).loss};
  for (Tensor& result : results) result = result.to(Cpu{});
  return results;
}

// Weights that are bfloat16 give the bits of weights that products round; widened, those of their numbers in float32.
TEST(Bfloat16Weights, HaveTheBitsOfTheirNumbers) {
  for (const Device& device : all_devices()) {
    const Tensor x = random32({12, 40}, 1).to(device), b = random32({24}, 4).to(device);
    const Tensor both = random32({48, 40}, 2).to(device), narrow = to_bfloat16(both), wide = to_float32(narrow);
    const auto found = [&](const Tensor& all) { return products_with(x, all.rows(0, 24), all.rows(24, 48), b); };
    const auto expect_same = [&](const Tensor& of) {
      const std::vector<Tensor> expected = found(of), same = found(narrow);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(same_bits(same[i], expected[i])) << device.text() << " " << i << " " << bfloat16_products();
    };
    expect_same(wide);
    const ProductPrecisionScope scope(ProductPrecision::bfloat16);
    expect_same(both);
  }
}

// What x gets is the gradient through the rounded weight.
TEST(Bfloat16Weights, LetGradientsThrough) {
  const Tensor w = random32({24, 40}, 2), dy = random32({12, 24}, 5);
  const auto gradient_of_x = [&](const Tensor& weight) {
    Tensor x = random32({12, 40}, 1);
    require_gradient(x);
    backward(linear(x, weight), dy);
    return gradient(x);
  };
  EXPECT_TRUE(same_bits(gradient_of_x(to_bfloat16(w)), gradient_of_x(rounded(w))));
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  EXPECT_TRUE(same_bits(gradient_of_x(to_bfloat16(w)), gradient_of_x(w)));
}

// Only models that are used have bfloat16 weights.
TEST(Bfloat16Weights, HaveNoGradient) {
  Tensor w = to_bfloat16(random32({24, 40}, 2));
  require_gradient(w);
  const Tensor x = random32({12, 40}, 1), v = to_bfloat16(random32({24, 40}, 3));
  const std::vector<LinearParameters> two = {{.weight = v, .bias = {}}, {.weight = w, .bias = {}}};
  const std::vector<int64_t> offsets = {0, 5, 12};
  const Indices labels = uniform_ids(12, 24, 4);
  const std::string refusal = ": weight [24, 40] is bfloat16 and needs a gradient; training needs float32";
  for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const ProductPrecisionScope scope(precision);
    EXPECT_EQ(message_of<ShapeError>([&] { linear(x, w); }), "linear" + refusal);
    EXPECT_EQ(message_of<ShapeError>([&] { fused_linear(x, two); }), "linear" + refusal);
    EXPECT_EQ(message_of<ShapeError>([&] { segment_linear(x, offsets, two); }), "linear" + refusal);
    EXPECT_EQ(message_of<ShapeError>([&] { linear_cross_entropy(x, w, {}, labels); }),
              "linear_cross_entropy" + refusal);
    const NoGrad no_grad;
    EXPECT_EQ(linear(x, w).shape(), (Shape{12, 24}));
  }
}

// One product may have weights of both types.
TEST(Bfloat16Weights, MayStandBesideFloat32) {
  const Tensor x = random32({12, 40}, 1), narrow = to_bfloat16(random32({24, 40}, 2)), wide = random32({8, 40}, 3);
  const auto product_with = [&](const Tensor& w) {
    return fused_linear(x, std::vector<LinearParameters>{{.weight = w, .bias = {}}, {.weight = wide, .bias = {}}});
  };
  for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
    const ProductPrecisionScope scope(precision);
    EXPECT_TRUE(same_bits(product_with(narrow), product_with(to_float32(narrow)))) << bfloat16_products();
  }
}

TEST(Bfloat16Weights, AreWidenedTogetherWhereTheyAreAdjacent) {
  const Tensor x = random32({4, 512}, 1), wide = random32({768, 512}, 2), narrow = to_bfloat16(wide);
  const auto most_with = [&](const Tensor& all) {
    std::vector<LinearParameters> three;
    for (int64_t row = 0; row < 768; row += 256) three.push_back({.weight = all.rows(row, row + 256), .bias = {}});
    const int64_t before = allocator_statistics().bytes_in_use;
    reset_peak_bytes();
    fused_linear(x, three);
    return static_cast<double>(allocator_statistics().peak_bytes_in_use - before);
  };
  EXPECT_LT(most_with(narrow) - most_with(wide), 1.5 * static_cast<double>(wide.bytes()));
}

TEST(Bfloat16Weights, AreNotThereTwice) {
  const Tensor wide = random32({512, 512}, 1), narrow = to_bfloat16(wide);
  const auto parts_of = [](const Tensor& all) { return std::vector<Tensor>{all.rows(0, 256), all.rows(256, 512)}; };
  const std::vector<Tensor> parts = parts_of(narrow), apart = {parts[1], parts[0]}, of_wide = parts_of(wide);
  const ProductPrecisionScope scope(ProductPrecision::bfloat16);
  EXPECT_EQ(stacked_in_bfloat16({&narrow, 1}).address(), narrow.address());
  EXPECT_EQ(stacked_in_bfloat16(parts).address(), narrow.address());
  const int64_t before = allocator_statistics().bytes_in_use;
  EXPECT_EQ(stacked_in_bfloat16(apart).shape(), narrow.shape());
  EXPECT_EQ(allocator_statistics().bytes_in_use, before) << "a copy of what is not adjacent is for one product";
  stacked_in_bfloat16(of_wide);
  EXPECT_GT(allocator_statistics().bytes_in_use, before) << "what is rounded is kept";
}

// The other way of forming these products is that of processors without the instructions.
TEST(Bfloat16Products, WithoutInstructionsTheSameTestsPass) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "that is what all of them just did";
  if (!cpu::has_onednn_float32()) GTEST_SKIP() << "a build without oneDNN cannot be told to do without instructions";
  const CommandResult result = run_own_tests("*Bfloat16*", "AVX512_CORE");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("that is what all of them just did"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace attune

#include "attune/kernels/cpu/gemm/panel_matmul.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/tensor/tensor.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

using cpu::MatmulShape;

// What is multiplied, and what c is.
struct PanelTypes {
  DType in = DType::f32, out = DType::f32;
};

std::vector<PanelTypes> types_of_this_processor() {
  std::vector<PanelTypes> types = {{}};
  if (cpu::has_avx512_bfloat16()) types.insert(types.end(), {{DType::bf16, DType::f32}, {DType::bf16, DType::bf16}});
  return types;
}

struct Operands {
  MatmulShape shape;
  Tensor a, b, bias, before;  // `before`: what c has, for accumulate
};

Operands operands(const MatmulShape& s, const PanelTypes& types = {}) {
  const auto random = [](const Shape& shape, uint64_t seed, DType dtype) {
    return normal(shape, {.dtype = DType::f32, .seed = seed}).to(dtype);
  };
  return {s, random(s.transpose_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, 1, types.in),
          random(s.transpose_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2, types.in), random({s.n}, 3, DType::f32),
          random({s.m, s.n}, 4, types.out)};
}

Tensor product(const Operands& o, bool with_bias) {
  const Tensor c = o.before.clone();
  const float* const bias = with_bias ? o.bias.data<float>() : nullptr;
  if (o.a.dtype() == DType::f32) {
    cpu::panel_matmul(o.a.data<float>(), o.b.data<float>(), bias, c.data<float>(), o.shape);
  } else if (c.dtype() == DType::f32) {
    cpu::panel_matmul(o.a.data<bfloat16>(), o.b.data<bfloat16>(), bias, c.data<float>(), o.shape);
  } else {
    cpu::panel_matmul(o.a.data<bfloat16>(), o.b.data<bfloat16>(), bias, c.data<bfloat16>(), o.shape);
  }
  return c;
}

Tensor product_in_float64(const Operands& o, bool with_bias) {
  const Tensor a = o.a.to(DType::f64), b = o.b.to(DType::f64), c = o.before.to(DType::f64);
  matmul(Cpu{}, a, b, with_bias ? o.bias.to(DType::f64) : Tensor{}, c,
         {.transpose_a = o.shape.transpose_a,
          .transpose_b = o.shape.transpose_b,
          .accumulate = o.shape.accumulate,
          .activation = o.shape.activation});
  return c;
}

// Each of k products of numbers around 1 is rounded, and so is each sum; then the result, if it is bfloat16.
bool agrees(const Operands& o, bool with_bias) {
  const Tensor found = product(o, with_bias).to(DType::f64), expected = product_in_float64(o, with_bias);
  const double of_sums = 5e-7 * static_cast<double>(o.shape.k + 10);
  for (int64_t i = 0; i < found.numel(); ++i) {
    const double x = found.data<double>()[i], y = expected.data<double>()[i];
    const double of_result = o.before.dtype() == DType::bf16 ? std::abs(y) / 256 : 0;
    if (std::abs(x - y) > of_sums + of_result) return false;
  }
  return true;
}

void expect_agreement(const MatmulShape& shape, bool with_bias) {
  for (const PanelTypes& types : types_of_this_processor())
    EXPECT_TRUE(agrees(operands(shape, types), with_bias))
        << shape.m << " " << shape.n << " " << shape.k << " " << shape.transpose_a << shape.transpose_b
        << shape.accumulate << with_bias << " " << name_of(types.in) << " " << name_of(types.out);
}

// Sizes on both sides of tiles, panels and of what is taken at a time of rows and of k.
TEST(PanelMatmul, AgreesWithFloat64) {
  for_each_target([](const char* target) {
    SCOPED_TRACE(target);
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
                 {1, 1, 1}, {5, 17, 3}, {7, 16, 512}, {130, 33, 513}, {121, 70, 1030}, {20, 40, 1024}})
          expect_agreement({.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b},
                           (m + n) % 2 == 0);
  });
  expect_agreement({.m = 9, .n = 1100, .k = 40}, true);                        // more panels than one piece has
  expect_agreement({.m = 9, .n = 1100, .k = 2100}, true);                      // more than are laid out at a time
  expect_agreement({.m = 9, .n = 1100, .k = 5000}, true);                      // ... of bfloat16
  expect_agreement({.m = 530, .n = 20, .k = 520, .transpose_a = true}, true);  // a is copied
  expect_agreement({.m = 40, .n = 50, .k = 60, .activation = Activation::relu}, true);
}

RC_GTEST_PROP(PanelMatmul, AgreesWithFloat64AtAnySize, ()) {
  const auto size = [](int64_t most) { return *rc::gen::inRange<int64_t>(1, most); };
  MatmulShape shape{.m = size(260), .n = size(80), .k = size(1100)};
  shape.transpose_a = *rc::gen::arbitrary<bool>();
  shape.transpose_b = *rc::gen::arbitrary<bool>();
  shape.accumulate = *rc::gen::arbitrary<bool>();
  if (!shape.accumulate) shape.activation = *rc::gen::element(Activation::none, Activation::relu, Activation::tanh);
  const Operands o = operands(shape, *rc::gen::elementOf(types_of_this_processor()));
  const bool with_bias = *rc::gen::arbitrary<bool>();
  RC_ASSERT(agrees(o, with_bias));
}

TEST(PanelMatmul, RowsDependOnNeitherOtherRowsNorThreads) {
  std::vector<std::pair<PanelTypes, bool>> cases = {{{}, false}};
  for (const PanelTypes& types : types_of_this_processor()) cases.emplace_back(types, types.in == types.out);
  for (const auto& [types, transpose_b] : cases) {
    Operands o = operands({.m = 700, .n = 1130, .k = 300, .transpose_b = transpose_b}, types);
    o.shape.activation = Activation::gelu;
    const Tensor a = o.a;
    const auto runs = with_one_and_two_threads([&] { return product(o, true); });
    const Tensor all = runs.first;
    EXPECT_TRUE(same_bits(all, runs.second));
    const auto expect_rows = [&](int64_t first, int64_t rows) {
      o.a = a.rows(first, first + rows);
      o.shape.m = rows;
      EXPECT_TRUE(same_bits(product(o, true).rows(0, rows), all.rows(first, first + rows))) << first << " " << rows;
    };
    for (const int64_t rows : {1, 2, 5, 6, 7, 33, 121, 500}) expect_rows(0, rows);
    for (const int64_t first : {1, 3, 119, 360}) expect_rows(first, 130);
  }
}

TEST(PanelMatmul, GradientsOfWeightsDoNotDependOnThreads) {
  for (const PanelTypes& types : types_of_this_processor()) {
    const Operands o = operands({.m = 150, .n = 40, .k = 2000, .transpose_a = true}, types);
    const auto [one, two] = with_one_and_two_threads([&] { return product(o, false); });
    EXPECT_TRUE(same_bits(one, two));
    for (const int many : {3, 5, 16}) {
      const ThreadScope threads(many);
      EXPECT_TRUE(same_bits(product(o, false), one)) << many;
    }
  }
}

}  // namespace
}  // namespace attune

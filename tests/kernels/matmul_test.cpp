#include "attune/kernels/gemm/matmul.h"

#include <gtest/gtest.h>

#include "attune/base/parallel.h"
#include "attune/kernels/gemm/column_sums.h"
#include "attune/tensor/dispatch.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

struct Types {
  DType in, out, bias;
  double tolerance;
};
constexpr Types kTypes[] = {{DType::f32, DType::f32, DType::f32, 1e-5},
                            {DType::f64, DType::f64, DType::f64, 1e-12},
                            {DType::bf16, DType::f32, DType::f32, 1e-5},
                            {DType::bf16, DType::bf16, DType::f32, 1.0 / 128}};

Tensor run(const Types& types, int64_t k, const MatmulForm& form, bool with_bias, const Device& device) {
  const Tensor a = normal(form.transpose_a ? Shape{k, 19} : Shape{19, k}, {.seed = 1}).to(types.in).to(device);
  const Tensor b = normal(form.transpose_b ? Shape{21, k} : Shape{k, 21}, {.seed = 2}).to(types.in).to(device);
  const Tensor bias = with_bias ? normal({21}, {.seed = 3}).to(types.bias).to(device) : Tensor{};
  const Tensor c = normal({19, 21}, {.seed = 4}).to(types.out).to(device);
  dispatch(device, [&](auto d) { matmul(d, a, b, bias, c, form); });
  return c.to(Cpu{});
}

TEST(MatmulKernel, IsTheSameOnEveryDevice) {
  for (const Types& types : kTypes) {
    for (const int64_t k : {0, 1, 40}) {
      for (int bits = 0; bits < 16; ++bits) {
        MatmulForm form{.transpose_a = (bits & 1) != 0, .transpose_b = (bits & 2) != 0, .accumulate = (bits & 4) != 0};
        if (!form.accumulate) form.activation = (bits & 8) != 0 ? Activation::silu : Activation::relu;
        const bool with_bias = (bits & 8) != 0 && !form.accumulate;
        const Tensor expected = run(types, k, form, with_bias, Cpu{});
        for (const Device& device : devices_under_test())
          EXPECT_LT(relative_error(run(types, k, form, with_bias, device), expected), types.tolerance)
              << device.text() << " " << name_of(types.in) << " " << name_of(types.out) << " " << k << " " << bits;
      }
    }
  }
}

struct Sizes {
  int64_t m, n, k;
};
// One piece; odd numbers; several pieces of rows; several of rows and of columns, the last ones smaller; many terms;
// many rows and terms; a large vocabulary.
constexpr Sizes kSizes[] = {{40, 30, 20},    {33, 17, 31},    {300, 200, 50}, {1100, 430, 40},
                            {90, 100, 4100}, {530, 130, 520}, {3, 16390, 7}};

// Of numbers that are rounded to `rounded` before.
Tensor product(DType in, DType out, const Sizes& s, const MatmulForm& form, DType rounded = DType::f64) {
  const Tensor a = normal(form.transpose_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, {.seed = 1}).to(rounded).to(in);
  const Tensor b = normal(form.transpose_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, {.seed = 2}).to(rounded).to(in);
  const Tensor c = normal({s.m, s.n}, {.seed = 3}).to(rounded).to(out);
  const Tensor bias =
      form.accumulate ? Tensor{} : normal({s.n}, {.seed = 4}).to(in == DType::f64 ? DType::f64 : DType::f32);
  matmul(Cpu{}, a, b, bias, c, form);
  return c;
}

std::vector<MatmulForm> forms() {
  std::vector<MatmulForm> all;
  for (int bits = 0; bits < 8; ++bits) {
    MatmulForm form{.transpose_a = (bits & 1) != 0, .transpose_b = (bits & 2) != 0, .accumulate = (bits & 4) != 0};
    if (!form.accumulate) form.activation = Activation::gelu;
    all.push_back(form);
  }
  return all;
}

// In float64 the product is a plain loop.
TEST(MatmulKernel, LargeProductsAgreeWithFloat64) {
  for (const Sizes& s : kSizes)
    for (const MatmulForm& form : forms())
      EXPECT_LT(relative_error(product(DType::f32, DType::f32, s, form), product(DType::f64, DType::f64, s, form)),
                1e-5)
          << s.m << " " << s.n << " " << s.k << " " << form.transpose_a << form.transpose_b << form.accumulate;
}

TEST(MatmulKernel, LargeProductsOfBfloat16AgreeWithFloat64) {
  size_t next = 0;
  for (const Sizes& s : kSizes) {
    for (MatmulForm form : forms()) {
      constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu};
      if (!form.accumulate) form.activation = kActivations[next++ % std::size(kActivations)];
      const Tensor expected = product(DType::f64, DType::f64, s, form, DType::bf16);
      for (const DType out : {DType::f32, DType::bf16})
        EXPECT_LT(relative_error(product(DType::bf16, out, s, form, DType::bf16), expected),
                  out == DType::f32 ? 1e-5 : 1.0 / 128)
            << s.m << " " << s.n << " " << s.k << " " << form.transpose_a << form.transpose_b << form.accumulate;
    }
  }
}

TEST(MatmulKernel, SameBitsForEveryNumberOfThreads) {
  for (const DType in : {DType::f32, DType::bf16}) {
    for (const Sizes& s : {kSizes[3], kSizes[4], kSizes[5]}) {
      for (const MatmulForm& form : forms()) {
        const auto with = [&](int64_t threads) {
          const ThreadScope scope(threads);
          return product(in, DType::f32, s, form);
        };
        const Tensor one = with(1);
        for (const int64_t threads : {2, 3, 32})
          EXPECT_TRUE(same_bits(with(threads), one))
              << name_of(in) << " " << threads << " threads, " << s.m << " " << s.n << " " << s.k;
      }
    }
  }
}

TEST(MatmulKernel, CountsRowsOfAllOuterDimensions) {
  const Tensor a = normal({2, 3, 5}, {.seed = 1}), b = normal({5, 7}, {.seed = 2});
  const Tensor c = Tensor::empty({2, 3, 7}, {.dtype = DType::f64}), d = Tensor::empty({6, 7}, {.dtype = DType::f64});
  matmul(Cpu{}, a, b, {}, c, {});
  matmul(Cpu{}, a.reshape({6, 5}), b, {}, d, {});
  EXPECT_TRUE(same_bits(c.reshape({6, 7}), d));
}

// Four columns at once where there is a multiple of them: 33, and 136, more than the columns of a block.
TEST(ColumnSums, AreTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{0, 33}, {1, 33}, {7, 33}, {300, 33}, {0, 136}, {7, 136}, {300, 136}}) {
      for (const bool accumulate : {false, true}) {
        const auto run = [&, rows = rows, columns = columns](const Device& device) {
          const Tensor x = normal({rows, columns}, {.dtype = dtype, .seed = 1}).to(device);
          const Tensor out = normal({columns}, {.dtype = dtype, .seed = 2}).to(device);
          dispatch(device, [&](auto d) { column_sums(d, x, out, accumulate); });
          return out.to(Cpu{});
        };
        for (const Device& device : devices_under_test())
          EXPECT_LT(relative_error(run(device), run(Cpu{})), dtype == DType::f32 ? 1e-5 : 1e-12)
              << rows << " " << columns << accumulate;
      }
    }
  }
}

}  // namespace
}  // namespace attune

#include "attune/kernels/cpu/gemm/bfloat16_tile_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "attune/base/random.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/tensor/dtype.h"

namespace attune {
namespace {

std::vector<float> numbers(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> all(count);
  for (float& x : all) x = static_cast<float>(bfloat16(static_cast<float>(random.uniform()) - 0.5f));
  return all;
}

struct TileSizes {
  int64_t m, n, k;
};

// Rows of c behind m are there up to a multiple of 16.
std::vector<float> by_tiles(const TileSizes& s, bool by_columns, bool accumulate, const std::vector<float>& a,
                            const std::vector<float>& b, std::vector<float> c) {
  const cpu::Bfloat16Tiles tiles(true);
  cpu::bfloat16_tile_product({.a = a.data(),
                              .a_row = by_columns ? 1 : s.k,
                              .a_column = by_columns ? (s.m + 15) / 16 * 16 : 1,
                              .b = b.data(),
                              .b_row = s.n,
                              .c = c.data(),
                              .m = s.m,
                              .n = s.n,
                              .k = s.k,
                              .accumulate = accumulate});
  return c;
}

TEST(Bfloat16TileProduct, AgreesWithFloat64) {
  if (!cpu::has_avx512_bfloat16()) GTEST_SKIP() << "the processor does not multiply bfloat16";
  for (const TileSizes& s : {TileSizes{1, 16, 1}, TileSizes{15, 16, 64}, TileSizes{17, 48, 33}, TileSizes{64, 64, 64},
                             TileSizes{64, 64, 256}, TileSizes{50, 256, 64}, TileSizes{33, 32, 7}}) {
    for (const bool by_columns : {false, true}) {
      for (const bool accumulate : {false, true}) {
        const int64_t rows = (s.m + 15) / 16 * 16, stride = by_columns ? rows : s.k;
        const std::vector<float> a = numbers(static_cast<size_t>(rows * s.k), 1);
        const std::vector<float> b = numbers(static_cast<size_t>(s.k * s.n), 2);
        const std::vector<float> before = numbers(static_cast<size_t>(rows * s.n), 3);
        const std::vector<float> after = by_tiles(s, by_columns, accumulate, a, b, before);
        for (int64_t i = 0; i < s.m; ++i) {
          for (int64_t j = 0; j < s.n; ++j) {
            const auto at = static_cast<size_t>(i * s.n + j);
            double sum = accumulate ? before[at] : 0;
            for (int64_t p = 0; p < s.k; ++p)
              sum += double{a[static_cast<size_t>(by_columns ? p * stride + i : i * stride + p)]} *
                     double{b[static_cast<size_t>(p * s.n + j)]};
            ASSERT_NEAR(after[at], sum, 1e-5 * static_cast<double>(s.k + 1)) << s.m << " " << s.n << " " << s.k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attune

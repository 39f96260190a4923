#include <algorithm>
#include <atomic>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/bfloat16.h"
#include "attune/kernels/cpu/gemm/amx_matmul.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/cpu/gemm/matmul_shape.h"
#include "attune/kernels/cpu/gemm/onednn_matmul.h"
#include "attune/kernels/cpu/gemm/panel_matmul.h"
#include "attune/kernels/cpu/vector_width.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

namespace attune {
namespace {

using cpu::MatmulShape;

std::atomic<int64_t> flops_done{0};

void count(const MatmulShape& shape) {
  flops_done.fetch_add(2 * shape.m * shape.n * shape.k, std::memory_order_relaxed);
}

// A product of no terms is zero (or the bias); a library need not know that.
template <class T, class C>
bool finish_empty(const T* bias, C* c, const MatmulShape& shape) {
  if (shape.m == 0 || shape.n == 0) return true;
  if (shape.k > 0) return false;
  std::vector<T> row(static_cast<size_t>(shape.n));
  if (bias != nullptr) std::copy_n(bias, shape.n, row.data());
  cpu::activate(shape.activation, row.data(), row.data(), shape.n);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      const T value = row[static_cast<size_t>(j)];
      C& out = c[i * shape.n + j];
      out = static_cast<C>(shape.accumulate ? out + value : value);
    }
  }
  return true;
}

// From so many columns or terms on (logits of a large vocabulary and their gradients), oneDNN takes 1.07 to 1.7 times
// as long as panel_matmul().
constexpr int64_t kLongSide = 1 << 14;

// Looks at sizes of the model, never at the number of tokens: the rows of a batch may not change each other's results.
bool has_long_side(const MatmulShape& shape) {
  return std::max(shape.n, shape.transpose_a ? shape.m : shape.k) >= kLongSide;
}

void multiply_float32(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  if (cpu::has_onednn_float32() && !has_long_side(shape)) {
    cpu::onednn_matmul(a, b, bias, c, shape);
  } else {
    cpu::panel_matmul(a, b, bias, c, shape);
  }
  count(shape);
}

template <class Out>
void multiply_bfloat16(const bfloat16* a, const bfloat16* b, const float* bias, Out* c, const MatmulShape& shape) {
  if (cpu::has_amx_bfloat16()) {
    cpu::amx_matmul(a, b, bias, c, shape);
  } else {
    cpu::panel_matmul(a, b, bias, c, shape);
  }
  count(shape);
}

std::shared_ptr<Buffer> widened(const bfloat16* x, int64_t n) {
  auto buffer = allocate_buffer(static_cast<size_t>(n) * sizeof(float));
  cpu::widen(x, static_cast<float*>(buffer->data()), n);
  return buffer;
}

// In float32 on the same numbers, where the processor does not multiply bfloat16.
void emulate_product(const bfloat16* a, const bfloat16* b, const float* bias, float* c, const MatmulShape& shape) {
  const auto wide_a = widened(a, shape.m * shape.k), wide_b = widened(b, shape.k * shape.n);
  multiply_float32(static_cast<const float*>(wide_a->data()), static_cast<const float*>(wide_b->data()), bias, c,
                   shape);
}

void multiply(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  multiply_float32(a, b, bias, c, shape);
}

void multiply(const bfloat16* a, const bfloat16* b, const float* bias, float* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  if (!has_bfloat16_products()) return emulate_product(a, b, bias, c, shape);
  multiply_bfloat16(a, b, bias, c, shape);
}

void multiply(const bfloat16* a, const bfloat16* b, const float* bias, bfloat16* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  if (has_bfloat16_products()) return multiply_bfloat16(a, b, bias, c, shape);
  const auto wide = shape.accumulate ? widened(c, shape.m * shape.n)
                                     : allocate_buffer(static_cast<size_t>(shape.m * shape.n) * sizeof(float));
  auto* values = static_cast<float*>(wide->data());
  emulate_product(a, b, bias, values, shape);
  cpu::to_bfloat16(values, c, shape.m * shape.n);
}

void multiply(const double* a, const double* b, const double* bias, double* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  const int64_t a_row = shape.transpose_a ? 1 : shape.k;
  const int64_t a_column = shape.transpose_a ? shape.m : 1;
  const int64_t b_row = shape.transpose_b ? 1 : shape.n;
  const int64_t b_column = shape.transpose_b ? shape.k : 1;
  parallel_for(shape.m, 16, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(shape.n));
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        double sum = bias ? bias[j] : 0.0;
        for (int64_t p = 0; p < shape.k; ++p) sum += a[i * a_row + p * a_column] * b[p * b_row + j * b_column];
        sums[static_cast<size_t>(j)] = sum;
      }
      cpu::activate(shape.activation, sums.data(), sums.data(), shape.n);
      double* const out = c + i * shape.n;
      for (int64_t j = 0; j < shape.n; ++j)
        out[j] = shape.accumulate ? out[j] + sums[static_cast<size_t>(j)] : sums[static_cast<size_t>(j)];
    }
  });
}

MatmulShape shape_of(const Tensor& a, const Tensor& c, const MatmulForm& form) {
  const Rows of_a = as_rows(a);
  return {.m = form.transpose_a ? of_a.columns : of_a.rows,
          .n = c.size(-1),
          .k = form.transpose_a ? of_a.rows : of_a.columns,
          .transpose_a = form.transpose_a,
          .transpose_b = form.transpose_b,
          .accumulate = form.accumulate,
          .activation = form.activation};
}

}  // namespace

bool has_bfloat16_products() {
  return cpu::has_avx512_bfloat16();
}

bool has_avx512_products() {
  return cpu::has_wide_vectors();
}

void matmul(Cpu, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form) {
  with_product_types(a.dtype(), c.dtype(), [&]<class In, class Out, class Bias>(In, Out, Bias) {
    const Bias* const added = data_or_null<Bias>(bias);
    multiply(a.data<In>(), b.data<In>(), added, c.data<Out>(), shape_of(a, c, form));
  });
}

int64_t matmul_flops() {
  return flops_done.load(std::memory_order_relaxed);
}

}  // namespace attune

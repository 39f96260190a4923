#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/column_sums.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/gemm/column_sums.h"
#include "attune/kernels/cpu/gemm/column_sums_inl.h"
#include "attune/kernels/gemm/column_sums.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

void AddRows32(const float* x, int64_t rows, int64_t columns, float* sums, bool accumulate) {
  AddRows(x, rows, static_cast<size_t>(columns), sums, accumulate);
}
void AddRows64(const double* x, int64_t rows, int64_t columns, double* sums, bool accumulate) {
  AddRows(x, rows, static_cast<size_t>(columns), sums, accumulate);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(AddRows32);
HWY_EXPORT(AddRows64);

void add_rows(const float* x, int64_t rows, int64_t columns, float* sums, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(AddRows32)(x, rows, columns, sums, accumulate);
}
void add_rows(const double* x, int64_t rows, int64_t columns, double* sums, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(AddRows64)(x, rows, columns, sums, accumulate);
}

// The blocks of rows do not depend on the number of threads, and their sums are added in order. So the result does not
// depend on it either.
template <class T>
void sum_columns(const T* x, int64_t rows, int64_t columns, T* out, bool accumulate) {
  const int64_t block = cpu::column_block_rows(rows);
  const int64_t blocks = divide_up(rows, block);
  if (blocks <= 1) return add_rows(x, rows, columns, out, accumulate);
  const auto buffer = allocate_buffer(static_cast<size_t>(blocks * columns) * sizeof(T));
  T* partial = static_cast<T*>(buffer->data());
  parallel_for(rows, block, [&](int64_t begin, int64_t end) {
    add_rows(x + begin * columns, end - begin, columns, partial + begin / block * columns, false);
  });
  add_rows(partial, blocks, columns, out, accumulate);
}

}  // namespace

namespace cpu {

void column_sums(const float* x, int64_t rows, int64_t columns, float* out, bool accumulate) {
  sum_columns(x, rows, columns, out, accumulate);
}
void column_sums(const double* x, int64_t rows, int64_t columns, double* out, bool accumulate) {
  sum_columns(x, rows, columns, out, accumulate);
}

}  // namespace cpu

void column_sums(Cpu, const Tensor& x, const Tensor& out, bool accumulate) {
  const auto [rows, columns] = as_rows(x);
  dispatch_floating("column_sums", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    sum_columns(x.data<T>(), rows, columns, out.data<T>(), accumulate);
  });
}

}  // namespace attune
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/linear_gradient.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/activation_inl.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/gemm/column_sums.h"
#include "attune/kernels/cpu/gradient_pointers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/linear_gradient.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// Works on kRows rows at a time, because each step reads and writes `sums`.
template <int kRows, class T, class Dy, class Dz, class Function>
HWY_INLINE void SomeRows(const GradientPointers<T, Dy, Dz>& a, int64_t row, T* HWY_RESTRICT sums,
                         const Function& function) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(a.columns);
  const auto scale = hn::Set(d, static_cast<T>(a.scale));
  const size_t first = static_cast<size_t>(row) * columns;
  ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (size_t r = 0; r < kRows; ++r) {
      const size_t at = first + r * columns + i;
      const auto dy = hn::Mul(LoadAs(d, part, a.dy + at), scale);
      const auto dz = function.Gradient(d, a.saved != nullptr ? LoadAs(d, part, a.saved + at) : dy, dy);
      if (a.dz != nullptr) StoreAs(d, part, dz, a.dz + at);
      sum = hn::Add(sum, dz);
    }
    if (sums != nullptr) part.Store(d, hn::Add(part.Load(d, sums + i), sum), sums + i);
  });
}

template <class T, class Dy, class Dz, class Function>
HWY_INLINE void BlockOf(const GradientPointers<T, Dy, Dz>& a, int64_t begin, int64_t end, T* sums,
                        const Function& function) {
  if (sums != nullptr) std::fill_n(sums, a.columns, T{0});
  int64_t row = begin;
  for (; row + 4 <= end; row += 4) SomeRows<4>(a, row, sums, function);
  for (; row < end; ++row) SomeRows<1>(a, row, sums, function);
}

template <class T, class Dy, class Dz>
HWY_INLINE void Block(const GradientPointers<T, Dy, Dz>& a, int64_t begin, int64_t end, T* sums) {
  WithActivation(a.activation, [&](auto function) HWY_ATTR { BlockOf(a, begin, end, sums, function); });
}

void BlockF32(const GradientPointers<float, float, float>& a, int64_t begin, int64_t end, float* sums) {
  Block(a, begin, end, sums);
}
void BlockF64(const GradientPointers<double, double, double>& a, int64_t begin, int64_t end, double* sums) {
  Block(a, begin, end, sums);
}
void BlockNarrowing(const GradientPointers<float, float, bfloat16>& a, int64_t begin, int64_t end, float* sums) {
  Block(a, begin, end, sums);
}
void BlockBf16(const GradientPointers<float, bfloat16, bfloat16>& a, int64_t begin, int64_t end, float* sums) {
  Block(a, begin, end, sums);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(BlockF32);
HWY_EXPORT(BlockF64);
HWY_EXPORT(BlockNarrowing);
HWY_EXPORT(BlockBf16);

// The blocks of rows do not depend on the number of threads, and their sums are added in order. So the result does not
// depend on it either.
template <class T, class Dy, class Dz, class Kernel>
void by_blocks(const GradientPointers<T, Dy, Dz>& a, Kernel kernel) {
  if (a.d_bias == nullptr) {
    return parallel_for(a.rows, row_grain(a.columns),
                        [&](int64_t begin, int64_t end) { kernel(a, begin, end, nullptr); });
  }
  const int64_t block = cpu::column_block_rows(a.rows), blocks = divide_up(a.rows, block);
  if (blocks <= 1) return kernel(a, 0, a.rows, a.d_bias);
  const auto buffer = allocate_buffer(static_cast<size_t>(blocks * a.columns) * sizeof(T));
  T* partial = static_cast<T*>(buffer->data());
  parallel_for(a.rows, block,
               [&](int64_t begin, int64_t end) { kernel(a, begin, end, partial + begin / block * a.columns); });
  cpu::column_sums(partial, blocks, a.columns, a.d_bias, false);
}

void run(const GradientPointers<float, float, float>& a) {
  by_blocks(a, HWY_DYNAMIC_DISPATCH(BlockF32));
}
void run(const GradientPointers<double, double, double>& a) {
  by_blocks(a, HWY_DYNAMIC_DISPATCH(BlockF64));
}
void run(const GradientPointers<float, float, bfloat16>& a) {
  by_blocks(a, HWY_DYNAMIC_DISPATCH(BlockNarrowing));
}
void run(const GradientPointers<float, bfloat16, bfloat16>& a) {
  by_blocks(a, HWY_DYNAMIC_DISPATCH(BlockBf16));
}

}  // namespace

void linear_gradient(Cpu, const LinearGradient& a) {
  const Rows size = as_rows(a.dy);
  with_gradient_types(a, [&]<class T, class Dy, class Dz>(T, Dy, Dz) {
    run(GradientPointers<T, Dy, Dz>{.rows = size.rows,
                                    .columns = size.columns,
                                    .dy = a.dy.data<Dy>(),
                                    .saved = data_or_null<Dz>(a.saved),
                                    .activation = a.activation,
                                    .scale = a.scale,
                                    .dz = data_or_null<Dz>(a.dz),
                                    .d_bias = data_or_null<T>(a.d_bias)});
  });
}

}  // namespace attune
#endif

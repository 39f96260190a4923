#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <type_traits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/cpu/dropout_pointers.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class Y, class Out>
void DropoutRows(DropoutPointers<Y, Out> of, int64_t begin, int64_t end, const DropoutMask& mask) {
  const Out* x = std::is_same_v<Out, bfloat16> ? nullptr : of.x;  // sums are not written in bfloat16
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * of.columns;
    DropoutRow(x == nullptr ? x : x + at, of.y + at, of.out + at, mask, row, static_cast<size_t>(of.columns));
  }
}

void DropoutRows32(const DropoutPointers<float, float>& of, int64_t begin, int64_t end, const DropoutMask& mask) {
  DropoutRows(of, begin, end, mask);
}
void DropoutRows64(const DropoutPointers<double, double>& of, int64_t begin, int64_t end, const DropoutMask& mask) {
  DropoutRows(of, begin, end, mask);
}
void DropoutRowsWidening(const DropoutPointers<bfloat16, float>& of, int64_t begin, int64_t end,
                         const DropoutMask& mask) {
  DropoutRows(of, begin, end, mask);
}
void DropoutRowsNarrowing(const DropoutPointers<float, bfloat16>& of, int64_t begin, int64_t end,
                          const DropoutMask& mask) {
  DropoutRows(of, begin, end, mask);
}
void DropoutRows16(const DropoutPointers<bfloat16, bfloat16>& of, int64_t begin, int64_t end, const DropoutMask& mask) {
  DropoutRows(of, begin, end, mask);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
HWY_EXPORT(DropoutRows32);
HWY_EXPORT(DropoutRows64);
HWY_EXPORT(DropoutRowsWidening);
HWY_EXPORT(DropoutRowsNarrowing);
HWY_EXPORT(DropoutRows16);

void dropout_rows(Cpu, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask) {
  const Rows size = as_rows(y);
  const auto run = [&]<class Y, class Out>(
                       void (*kernel)(const DropoutPointers<Y, Out>&, int64_t, int64_t, const DropoutMask&)) {
    const DropoutPointers<Y, Out> of{data_or_null<Out>(x), y.data<Y>(), out.data<Out>(), size.columns};
    parallel_for(size.rows, row_grain(size.columns), [&](int64_t begin, int64_t end) { kernel(of, begin, end, mask); });
  };
  const bool from_bf16 = y.dtype() == DType::bf16, to_bf16 = out.dtype() == DType::bf16;
  if (from_bf16 && to_bf16) {
    run(HWY_DYNAMIC_DISPATCH(DropoutRows16));
  } else if (to_bf16) {
    run(HWY_DYNAMIC_DISPATCH(DropoutRowsNarrowing));
  } else if (from_bf16) {
    run(HWY_DYNAMIC_DISPATCH(DropoutRowsWidening));
  } else if (y.dtype() == DType::f64) {
    run(HWY_DYNAMIC_DISPATCH(DropoutRows64));
  } else {
    run(HWY_DYNAMIC_DISPATCH(DropoutRows32));
  }
}

}  // namespace attune
#endif

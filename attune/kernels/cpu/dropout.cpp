#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class X, class Y, class Out>
void DropoutRows(const X* x, const Y* y, Out* out, int64_t begin, int64_t end, int64_t columns,
                 const DropoutMask& mask) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * columns;
    DropoutRow(x == nullptr ? x : x + at, y + at, out + at, mask, row, static_cast<size_t>(columns));
  }
}

void DropoutRows32(const float* x, const float* y, float* out, int64_t begin, int64_t end, int64_t columns,
                   const DropoutMask& mask) {
  DropoutRows(x, y, out, begin, end, columns, mask);
}
void DropoutRows64(const double* x, const double* y, double* out, int64_t begin, int64_t end, int64_t columns,
                   const DropoutMask& mask) {
  DropoutRows(x, y, out, begin, end, columns, mask);
}
void DropoutRowsWidening(const float* x, const bfloat16* y, float* out, int64_t begin, int64_t end, int64_t columns,
                         const DropoutMask& mask) {
  DropoutRows(x, y, out, begin, end, columns, mask);
}
void DropoutRowsNarrowing(const float* y, bfloat16* out, int64_t begin, int64_t end, int64_t columns,
                          const DropoutMask& mask) {
  DropoutRows(static_cast<const float*>(nullptr), y, out, begin, end, columns, mask);
}
void DropoutRows16(const bfloat16* y, bfloat16* out, int64_t begin, int64_t end, int64_t columns,
                   const DropoutMask& mask) {
  DropoutRows(static_cast<const float*>(nullptr), y, out, begin, end, columns, mask);
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
  const auto [rows, columns] = as_rows(y);
  const auto run = [rows = rows, columns = columns](const auto& kernel) {
    parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) { kernel(begin, end, columns); });
  };
  const bool from_bf16 = y.dtype() == DType::bf16, to_bf16 = out.dtype() == DType::bf16;
  if (from_bf16 && to_bf16) {
    run([&, from = y.data<bfloat16>(), to = out.data<bfloat16>()](int64_t begin, int64_t end, int64_t width) {
      HWY_DYNAMIC_DISPATCH(DropoutRows16)(from, to, begin, end, width, mask);
    });
  } else if (to_bf16) {
    run([&, from = y.data<float>(), to = out.data<bfloat16>()](int64_t begin, int64_t end, int64_t width) {
      HWY_DYNAMIC_DISPATCH(DropoutRowsNarrowing)(from, to, begin, end, width, mask);
    });
  } else if (from_bf16) {
    run([&, sum = data_or_null<float>(x), from = y.data<bfloat16>(), to = out.data<float>()](int64_t begin, int64_t end,
                                                                                             int64_t width) {
      HWY_DYNAMIC_DISPATCH(DropoutRowsWidening)(sum, from, to, begin, end, width, mask);
    });
  } else if (y.dtype() == DType::f64) {
    run([&, sum = data_or_null<double>(x), from = y.data<double>(), to = out.data<double>()](int64_t begin, int64_t end,
                                                                                             int64_t width) {
      HWY_DYNAMIC_DISPATCH(DropoutRows64)(sum, from, to, begin, end, width, mask);
    });
  } else {
    run([&, sum = data_or_null<float>(x), from = y.data<float>(), to = out.data<float>()](int64_t begin, int64_t end,
                                                                                          int64_t width) {
      HWY_DYNAMIC_DISPATCH(DropoutRows32)(sum, from, to, begin, end, width, mask);
    });
  }
}

}  // namespace attune
#endif

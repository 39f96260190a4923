#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/row_grain.h"

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

void dropout_rows(Cpu, const float* x, const float* y, float* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask) {
  parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRows32)(x, y, out, begin, end, columns, mask);
  });
}

void dropout_rows(Cpu, const double* x, const double* y, double* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask) {
  parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRows64)(x, y, out, begin, end, columns, mask);
  });
}

void dropout_rows(Cpu, const float* x, const bfloat16* y, float* out, int64_t rows, int64_t columns,
                  const DropoutMask& mask) {
  parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRowsWidening)(x, y, out, begin, end, columns, mask);
  });
}

void dropout_rows(Cpu, const float* y, bfloat16* out, int64_t rows, int64_t columns, const DropoutMask& mask) {
  parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRowsNarrowing)(y, out, begin, end, columns, mask);
  });
}

void dropout_rows(Cpu, const bfloat16* y, bfloat16* out, int64_t rows, int64_t columns, const DropoutMask& mask) {
  parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRows16)(y, out, begin, end, columns, mask);
  });
}

}  // namespace attune
#endif

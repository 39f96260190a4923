#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gated_activation.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <type_traits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_inl.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gated_activation.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void ForwardRows(Activation kind, const T* x, T* y, size_t rows, size_t columns) {
  const hn::ScalableTag<Arithmetic<T>> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    for (size_t row = 0; row < rows; ++row) {
      const T* gate = x + row * 2 * columns;
      const T* up = gate + columns;
      T* out = y + row * columns;
      ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
        StoreAs(d, part, hn::Mul(activation.Value(d, LoadAs(d, part, gate + i)), LoadAs(d, part, up + i)), out + i);
      });
    }
  });
}

template <class T>
void BackwardRows(Activation kind, const T* x, const T* dy, T* dx, size_t rows, size_t columns) {
  const hn::ScalableTag<Arithmetic<T>> d;
  WithActivation(kind, [&](auto activation) HWY_ATTR {
    for (size_t row = 0; row < rows; ++row) {
      const T* gate = x + row * 2 * columns;
      const T* up = gate + columns;
      T* d_gate = dx + row * 2 * columns;
      T* d_up = d_gate + columns;
      const T* cotangent = dy + row * columns;
      ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
        const auto g = LoadAs(d, part, gate + i);
        const auto v = LoadAs(d, part, cotangent + i);
        StoreAs(d, part, activation.Gradient(d, g, hn::Mul(v, LoadAs(d, part, up + i))), d_gate + i);
        StoreAs(d, part, hn::Mul(v, activation.Value(d, g)), d_up + i);
      });
    }
  });
}

void Forward32(Activation kind, const float* x, float* y, size_t rows, size_t columns) {
  ForwardRows(kind, x, y, rows, columns);
}
void Forward64(Activation kind, const double* x, double* y, size_t rows, size_t columns) {
  ForwardRows(kind, x, y, rows, columns);
}
void Forward16(Activation kind, const bfloat16* x, bfloat16* y, size_t rows, size_t columns) {
  ForwardRows(kind, x, y, rows, columns);
}
void Backward16(Activation kind, const bfloat16* x, const bfloat16* dy, bfloat16* dx, size_t rows, size_t columns) {
  BackwardRows(kind, x, dy, dx, rows, columns);
}
void Backward32(Activation kind, const float* x, const float* dy, float* dx, size_t rows, size_t columns) {
  BackwardRows(kind, x, dy, dx, rows, columns);
}
void Backward64(Activation kind, const double* x, const double* dy, double* dx, size_t rows, size_t columns) {
  BackwardRows(kind, x, dy, dx, rows, columns);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Forward32);
HWY_EXPORT(Forward64);
HWY_EXPORT(Backward32);
HWY_EXPORT(Backward64);
HWY_EXPORT(Forward16);
HWY_EXPORT(Backward16);

}  // namespace

void gated_activation_forward(Cpu, Activation activation, const Tensor& x, const Tensor& y) {
  const auto [rows, d] = as_rows(y);
  for_storage_dtype("gated_activation", x.dtype(), [&, rows = rows, d = d]<class T>(T) {
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    parallel_for(rows, row_grain(2 * d), [&](int64_t begin, int64_t end) {
      const auto count = static_cast<size_t>(end - begin), columns = static_cast<size_t>(d);
      if constexpr (std::is_same_v<T, float>) {
        HWY_DYNAMIC_DISPATCH(Forward32)(activation, from + begin * 2 * d, to + begin * d, count, columns);
      } else if constexpr (std::is_same_v<T, double>) {
        HWY_DYNAMIC_DISPATCH(Forward64)(activation, from + begin * 2 * d, to + begin * d, count, columns);
      } else {
        HWY_DYNAMIC_DISPATCH(Forward16)(activation, from + begin * 2 * d, to + begin * d, count, columns);
      }
    });
  });
}

void gated_activation_backward(Cpu, Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  const auto [rows, d] = as_rows(dy);
  for_storage_dtype("gated_activation", x.dtype(), [&, rows = rows, d = d]<class T>(T) {
    const T* const input = x.data<T>();
    const T* const from = dy.data<T>();
    T* const to = dx.data<T>();
    parallel_for(rows, row_grain(2 * d), [&](int64_t begin, int64_t end) {
      const auto count = static_cast<size_t>(end - begin), columns = static_cast<size_t>(d);
      const int64_t at = begin * 2 * d;
      if constexpr (std::is_same_v<T, float>) {
        HWY_DYNAMIC_DISPATCH(Backward32)(activation, input + at, from + begin * d, to + at, count, columns);
      } else if constexpr (std::is_same_v<T, double>) {
        HWY_DYNAMIC_DISPATCH(Backward64)(activation, input + at, from + begin * d, to + at, count, columns);
      } else {
        HWY_DYNAMIC_DISPATCH(Backward16)(activation, input + at, from + begin * d, to + at, count, columns);
      }
    });
  });
}

}  // namespace attune
#endif

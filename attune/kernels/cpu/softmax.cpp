#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/softmax_inl.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"
#include "attune/kernels/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void ForwardRows(SoftmaxKind kind, const T* x, T* y, int64_t rows, size_t columns) {
  const hn::ScalableTag<T> d;
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    const T shift = RowShift(x, columns);
    if (kind == SoftmaxKind::probabilities) {
      const T sum = SumOfExponentials(x, shift, columns, y);
      const auto scale = hn::Set(d, sum == 0 ? T{0} : 1 / sum);
      ForEachVector(d, columns,
                    [&](size_t i, auto part) HWY_ATTR { part.Store(d, hn::Mul(part.Load(d, y + i), scale), y + i); });
    } else {
      // In two steps: the logarithm, added to a large shift first, would be lost in rounding.
      const T sum = SumOfExponentials(x, shift, columns, static_cast<T*>(nullptr));
      const auto log_sum = hn::Set(d, static_cast<T>(sum == 0 ? 0.0 : std::log(static_cast<double>(sum))));
      const auto from = hn::Set(d, shift);
      ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
        part.Store(d, hn::Sub(hn::Sub(part.Load(d, x + i), from), log_sum), y + i);
      });
    }
  }
}

// softmax: dx = y (dy - sum(y dy));  log_softmax: dx = dy - exp(y) sum(dy)
template <class T>
void BackwardRows(SoftmaxKind kind, const T* y, const T* dy, T* dx, int64_t rows, size_t columns) {
  const hn::ScalableTag<T> d;
  const bool probabilities = kind == SoftmaxKind::probabilities;
  for (int64_t row = 0; row < rows; ++row, y += columns, dy += columns, dx += columns) {
    T total[1];
    Sums(d, columns, total, [&](size_t i, auto part, auto& sums) HWY_ATTR {
      const auto g = part.Load(d, dy + i);
      sums[0] = probabilities ? hn::MulAdd(part.Load(d, y + i), g, sums[0]) : hn::Add(sums[0], g);
    });
    const auto sum = hn::Set(d, total[0]);
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const auto v = part.Load(d, y + i);
      const auto g = part.Load(d, dy + i);
      part.Store(d, probabilities ? hn::Mul(v, hn::Sub(g, sum)) : hn::NegMulAdd(ExpOf(d, v), sum, g), dx + i);
    });
  }
}

void ForwardRows32(SoftmaxKind kind, const float* x, float* y, int64_t rows, int64_t columns) {
  ForwardRows(kind, x, y, rows, static_cast<size_t>(columns));
}
void ForwardRows64(SoftmaxKind kind, const double* x, double* y, int64_t rows, int64_t columns) {
  ForwardRows(kind, x, y, rows, static_cast<size_t>(columns));
}
void BackwardRows32(SoftmaxKind kind, const float* y, const float* dy, float* dx, int64_t rows, int64_t columns) {
  BackwardRows(kind, y, dy, dx, rows, static_cast<size_t>(columns));
}
void BackwardRows64(SoftmaxKind kind, const double* y, const double* dy, double* dx, int64_t rows, int64_t columns) {
  BackwardRows(kind, y, dy, dx, rows, static_cast<size_t>(columns));
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(ForwardRows32);
HWY_EXPORT(ForwardRows64);
HWY_EXPORT(BackwardRows32);
HWY_EXPORT(BackwardRows64);

}  // namespace

void softmax_forward(Cpu, SoftmaxKind kind, const Tensor& x, const Tensor& y) {
  const auto [rows, columns] = as_rows(x);
  dispatch_floating("softmax", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns;
      for_type<T>(HWY_DYNAMIC_DISPATCH(ForwardRows32), HWY_DYNAMIC_DISPATCH(ForwardRows64))(kind, from + at, to + at,
                                                                                            end - begin, columns);
    });
  });
}

void softmax_backward(Cpu, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const auto [rows, columns] = as_rows(y);
  dispatch_floating("softmax", y.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    const T* const output = y.data<T>();
    const T* const from = dy.data<T>();
    T* const to = dx.data<T>();
    parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns;
      for_type<T>(HWY_DYNAMIC_DISPATCH(BackwardRows32), HWY_DYNAMIC_DISPATCH(BackwardRows64))(
          kind, output + at, from + at, to + at, end - begin, columns);
    });
  });
}

}  // namespace attune
#endif

#include "attune/kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/rows.h"

namespace attune {
namespace {

// softmax(x) = exp(x - max) / sum(exp(x - max))
template <class T>
void forward_row(SoftmaxKind kind, const T* x, T* y, int64_t columns) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, static_cast<double>(x[i]));
  if (largest == -std::numeric_limits<double>::infinity()) largest = 0;  // all are: exp gives 0, not NaN
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[i] - largest);
  for (int64_t i = 0; i < columns; ++i) {
    const double shifted = x[i] - largest;
    y[i] = static_cast<T>(kind == SoftmaxKind::logarithms ? shifted - (sum == 0 ? 0 : std::log(sum))
                                                          : (sum == 0 ? 0 : std::exp(shifted) / sum));
  }
}

}  // namespace

void softmax_forward(Plain, SoftmaxKind kind, const Tensor& x, const Tensor& y) {
  const Rows size = as_rows(x);
  dispatch_floating("softmax", x.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < size.rows; ++r)
      forward_row(kind, x.data<T>() + r * size.columns, y.data<T>() + r * size.columns, size.columns);
  });
}

// softmax: dx = y (dy - sum(y dy));  log_softmax: dx = dy - exp(y) sum(dy)
void softmax_backward(Plain, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const Rows size = as_rows(y);
  const bool logarithms = kind == SoftmaxKind::logarithms;
  dispatch_floating("softmax", y.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < size.rows; ++r) {
      const T* const out = y.data<T>() + r * size.columns;
      const T* const g = dy.data<T>() + r * size.columns;
      T* const to = dx.data<T>() + r * size.columns;
      double sum = 0;
      for (int64_t i = 0; i < size.columns; ++i) sum += logarithms ? g[i] : static_cast<double>(out[i]) * g[i];
      for (int64_t i = 0; i < size.columns; ++i)
        to[i] = static_cast<T>(logarithms ? g[i] - std::exp(static_cast<double>(out[i])) * sum : out[i] * (g[i] - sum));
    }
  });
}

}  // namespace attune

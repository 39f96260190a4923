#include "attune/kernels/gated_activation.h"

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/plain/activation_functions.h"
#include "attune/kernels/rows.h"

namespace attune {

void gated_activation_forward(Plain, Activation activation, const Tensor& x, const Tensor& y) {
  const Rows size = as_rows(y);
  for_storage_dtype("gated_activation", x.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < size.rows; ++r) {
      const T* const gate = x.data<T>() + r * 2 * size.columns;
      const T* const up = gate + size.columns;
      for (int64_t i = 0; i < size.columns; ++i)
        y.data<T>()[r * size.columns + i] =
            static_cast<T>(plain::activation_of(activation, gate[i]) * static_cast<double>(up[i]));
    }
  });
}

void gated_activation_backward(Plain, Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  const Rows size = as_rows(dy);
  for_storage_dtype("gated_activation", x.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < size.rows; ++r) {
      const T* const gate = x.data<T>() + r * 2 * size.columns;
      const T* const up = gate + size.columns;
      T* const d_gate = dx.data<T>() + r * 2 * size.columns;
      T* const d_up = d_gate + size.columns;
      for (int64_t i = 0; i < size.columns; ++i) {
        const auto g = static_cast<double>(dy.data<T>()[r * size.columns + i]);
        d_gate[i] = static_cast<T>(g * static_cast<double>(up[i]) * plain::slope_of(activation, gate[i]));
        d_up[i] = static_cast<T>(g * plain::activation_of(activation, gate[i]));
      }
    }
  });
}

}  // namespace attune

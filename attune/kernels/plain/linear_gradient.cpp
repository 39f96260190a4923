#include "attune/kernels/gemm/linear_gradient.h"

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/plain/activation_functions.h"
#include "attune/kernels/rows.h"

namespace attune {

void linear_gradient(Plain, const LinearGradient& a) {
  const auto [rows, columns] = as_rows(a.dy);
  with_gradient_types(a, [&, rows = rows, columns = columns]<class T, class Dy, class Dz>(T, Dy, Dz) {
    const Dz* const saved = data_or_null<Dz>(a.saved);
    Dz* const dz = data_or_null<Dz>(a.dz);
    T* const d_bias = data_or_null<T>(a.d_bias);
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t i = r * columns + j;
        const double slope = saved != nullptr ? plain::slope_of(a.activation, saved[i]) : 1;
        const double value = a.scale * static_cast<double>(a.dy.data<Dy>()[i]) * slope;
        if (dz != nullptr) dz[i] = static_cast<Dz>(value);
        sum += value;
      }
      if (d_bias != nullptr) d_bias[j] = static_cast<T>(sum);
    }
  });
}

}  // namespace attune

#include "attune/kernels/attention/rotary.h"

#include <cmath>

#include "attune/tensor/dtype.h"

namespace attune {

void rotary_table(Plain, const RotaryFrequencies& rotations, const Tensor& positions, int64_t first,
                  const Tensor& table) {
  dispatch_floating("rotary", table.dtype(), [&]<class T>(T) {
    const int64_t pairs = table.size(2);
    for (int64_t row = 0; row < table.size(0); ++row) {
      const int64_t position = positions.defined() ? positions.data<int32_t>()[row] : first + row;
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(position) * rotations.frequencies[static_cast<size_t>(i)];
        T* cosines = table.data<T>() + row * 2 * pairs;
        cosines[i] = static_cast<T>(std::cos(angle) * rotations.magnitude);
        cosines[pairs + i] = static_cast<T>(std::sin(angle) * rotations.magnitude);
      }
    }
  });
}

void rotary_rows(Plain, const RotaryRows& a) {
  dispatch_floating("rotary", a.x.dtype(), [&]<class T>(T) {
    const int64_t heads = a.x.size(1), d = a.x.size(2), pairs = a.table.size(2);
    for (int64_t i = 0; i < a.x.size(0) * heads; ++i) {
      const T* x = a.x.data<T>() + i * d;
      T* y = a.y.data<T>() + i * d;
      const T* cosines = a.table.data<T>() + 2 * pairs * a.table_rows.data<int32_t>()[i / heads];
      const T* sines = cosines + pairs;
      for (int64_t c = 0; c < d; ++c) y[c] = x[c];
      for (int64_t p = 0; p < pairs && i % heads < a.rotated; ++p) {
        const bool half = a.pairing == RotaryPairing::half;
        const int64_t first = half ? p : 2 * p, second = half ? p + pairs : 2 * p + 1;
        const T sine = a.back ? -sines[p] : sines[p];
        y[first] = x[first] * cosines[p] - x[second] * sine;
        y[second] = x[second] * cosines[p] + x[first] * sine;
      }
    }
  });
}

}  // namespace attune

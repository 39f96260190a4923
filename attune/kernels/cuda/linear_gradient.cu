#include "attune/kernels/linear_gradient.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/column_sums.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// Writes dz, if there is one, and returns the value before it is rounded.
template <class T, class Dy, class Dz>
struct Slope {
  const Dy* dy;
  const Dz* saved;  // or null
  Dz* dz;           // or null
  Activation activation;
  T scale;
  int64_t columns;

  ATTUNE_DEVICE T at(int64_t i) const {
    const T slope = saved != nullptr ? cuda::slope_of(activation, static_cast<T>(saved[i])) : T{1};
    const T value = scale * static_cast<T>(dy[i]) * slope;
    if (dz != nullptr) dz[i] = static_cast<Dz>(value);
    return value;
  }
  ATTUNE_DEVICE T operator()(int64_t row, int64_t column) const { return at(row * columns + column); }
};

template <class T, class Dy, class Dz>
struct SlopeAlone {
  Slope<T, Dy, Dz> slope;
  ATTUNE_DEVICE void operator()(int64_t i) const { slope.at(i); }
};

template <class T>
struct Store {
  T* out;
  ATTUNE_DEVICE void operator()(int64_t column, T sum) const { out[column] = sum; }
};

}  // namespace

void linear_gradient(Cuda device, const LinearGradient& a) {
  const Rows size = as_rows(a.dy);
  with_gradient_types(a, [&]<class T, class Dy, class Dz>(T, Dy, Dz) {
    const Slope<T, Dy, Dz> slope{a.dy.data<Dy>(), data_or_null<Dz>(a.saved), data_or_null<Dz>(a.dz),
                                 a.activation,    static_cast<T>(a.scale),   size.columns};
    if (a.d_bias.defined())
      return cuda::sum_columns<T>(device, "linear_gradient", size.rows, size.columns, slope,
                                  Store<T>{a.d_bias.data<T>()});
    cuda::for_each_element(device, "linear_gradient", a.dy.numel(), SlopeAlone<T, Dy, Dz>{slope});
  });
}

}  // namespace attune

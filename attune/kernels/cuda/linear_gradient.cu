#include "attune/kernels/linear_gradient.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/column_sums.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// Writes dz, if there is one, and returns the value before it is rounded.
template <class T, class Dy, class Dz>
struct Slope {
  struct Read {
    Dy dy;
    Dz saved;
  };
  const Dy* dy;
  const Dz* saved;  // or null
  Dz* dz;           // or null
  Activation activation;
  T scale;
  int64_t columns;

  ATTUNE_DEVICE T value_of(const Read& at) const {
    const T slope = saved != nullptr ? cuda::slope_of(activation, static_cast<T>(at.saved)) : T{1};
    return scale * static_cast<T>(at.dy) * slope;
  }
  ATTUNE_DEVICE Read read(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return {dy[i], saved != nullptr ? saved[i] : Dz{}};
  }
  ATTUNE_DEVICE T value(int64_t row, int64_t column, const Read& at) const {
    const T result = value_of(at);
    if (dz != nullptr) dz[row * columns + column] = static_cast<Dz>(result);
    return result;
  }
};

template <class T, class Dy, class Dz>
struct SlopeAlone {
  Slope<T, Dy, Dz> slope;  // with dz
  ATTUNE_DEVICE void operator()(int64_t i) const { slope.value(0, i, slope.read(0, i)); }
  bool has_fours() const {
    return cuda::has_fours(slope.dy) && cuda::has_fours(slope.saved) && cuda::has_fours(slope.dz);
  }
  ATTUNE_DEVICE void fours(int64_t i) const {
    const cuda::Four<Dy> dy = cuda::read_four(slope.dy, i);
    cuda::Four<Dz> values = {};
    if (slope.saved != nullptr) values = cuda::read_four<Dz>(slope.saved, i);
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) values.value[n] = static_cast<Dz>(slope.value_of({dy.value[n], values.value[n]}));
    cuda::write_four(slope.dz, i, values);
  }
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

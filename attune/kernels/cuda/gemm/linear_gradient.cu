#include "attune/kernels/gemm/linear_gradient.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/gemm/column_sums.h"
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
  struct FourRead {
    cuda::Four<Dy> dy;
    cuda::Four<Dz> saved;
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

  bool has_fours() const { return cuda::has_fours(dy) && cuda::has_fours(saved) && cuda::has_fours(dz); }
  ATTUNE_DEVICE FourRead read_four(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return {cuda::read_four(dy, i), saved != nullptr ? cuda::read_four(saved, i) : cuda::Four<Dz>{}};
  }
  ATTUNE_DEVICE cuda::Four<T> value_four(int64_t row, int64_t column, const FourRead& at) const {
    cuda::Four<T> results;
    cuda::Four<Dz> rounded;
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) {
      results.value[n] = value_of({at.dy.value[n], at.saved.value[n]});
      rounded.value[n] = static_cast<Dz>(results.value[n]);
    }
    if (dz != nullptr) cuda::write_four(dz, row * columns + column, rounded);
    return results;
  }
};

template <class T, class Dy, class Dz>
struct SlopeAlone {
  Slope<T, Dy, Dz> slope;  // with dz
  ATTUNE_DEVICE void operator()(int64_t i) const { slope.value(0, i, slope.read(0, i)); }
  bool has_fours() const { return slope.has_fours(); }
  ATTUNE_DEVICE void fours(int64_t i) const { slope.value_four(0, i, slope.read_four(0, i)); }
};

}  // namespace

void linear_gradient(Cuda device, const LinearGradient& a) {
  const Rows size = as_rows(a.dy);
  with_gradient_types(a, [&]<class T, class Dy, class Dz>(T, Dy, Dz) {
    const Slope<T, Dy, Dz> slope{a.dy.data<Dy>(), data_or_null<Dz>(a.saved), data_or_null<Dz>(a.dz),
                                 a.activation,    static_cast<T>(a.scale),   size.columns};
    if (a.d_bias.defined())
      return cuda::sum_columns<T>(device, "linear_gradient", size.rows, size.columns, slope,
                                  cuda::StoreColumn<T>{a.d_bias.data<T>()});
    cuda::for_each_element(device, "linear_gradient", a.dy.numel(), SlopeAlone<T, Dy, Dz>{slope});
  });
}

}  // namespace attune

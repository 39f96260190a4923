#include <type_traits>

#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/gemm/column_sums.h"
#include "attune/kernels/cuda/norm_rows.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/layer_norm.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// With g = dy * weight and z the normalised row: dx = factor * (g - mean(g) - z * along * sum(g z)), where mean(g) is
// left out if the row was not centred.
template <class T>
struct RowGradient {
  T factor;
  T average;   // mean(g), or 0
  T parallel;  // along * sum(g z)
  ATTUNE_DEVICE T operator()(T g, T z) const { return factor * (g - average - z * parallel); }
};

// One block for each row.
template <class T, class Dy, class Dropped>
struct NormBackward {
  static constexpr int kThreads = cuda::kNormThreads;
  const T* x;
  const T* statistics;
  const T* weight;
  const Dy* dy;
  T* dx;
  Dropped* d_dropped;  // or null
  int64_t columns;
  bool centred;
  cuda::DropoutBits mask;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t row = thread.block(), begin = row * columns;
    const T mean = statistics[row * 3], factor = statistics[row * 3 + 1], along = statistics[row * 3 + 2];
    T sum_g = 0, sum_gz = 0;
    for (int64_t c = thread.index(); c < columns; c += thread.count()) {
      const T g = static_cast<T>(dy[begin + c]) * weight[c], z = (x[begin + c] - mean) * factor;
      sum_g += g;
      sum_gz += g * z;
    }
    sum_gz = thread.reduce(sum_gz, cuda::Sum{}) * along;
    const T average = centred ? thread.reduce(sum_g, cuda::Sum{}) / static_cast<T>(columns) : T{0};
    const RowGradient<T> gradient_of{.factor = factor, .average = average, .parallel = sum_gz};
    const auto scale = static_cast<T>(mask.scale());
    const int64_t quads = cuda::quads_of(columns);
    for (int64_t quad = thread.index(); quad < quads; quad += thread.count()) {
      const unsigned bits = d_dropped != nullptr ? mask.quad(row, quad) : 0;
      cuda::for_columns_of_quad(columns, quad, bits, [&](int64_t c, bool kept) {
        const T g = static_cast<T>(dy[begin + c]) * weight[c], z = (x[begin + c] - mean) * factor;
        const T gradient = gradient_of(g, z);
        if (d_dropped != nullptr) d_dropped[begin + c] = static_cast<Dropped>(kept ? gradient * scale : T{0});
        dx[begin + c] = gradient;
      });
    }
  }
};

// NormBackward without dropout, one warp for each row.
template <int kFours, class Dy>
struct WarpNormBackward {
  static constexpr int kThreads = cuda::kWarpNormThreads;
  const float* x;
  const float* statistics;
  const float* weight;
  const Dy* dy;
  float* dx;
  int64_t rows;
  bool centred;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    using Row = cuda::WarpRow<kFours>;
    const int64_t row = thread.block() * thread.warps() + thread.warp(), begin = row * Row::kColumns;
    const int lane = thread.lane();
    if (row >= rows) return;  // the whole warp
    const float mean = statistics[row * 3], factor = statistics[row * 3 + 1], along = statistics[row * 3 + 2];
    Row z = Row::read(x + begin, lane), g = Row::read(dy + begin, lane);
    const Row scales = Row::read(weight, lane);
    z.change([&](float v, int) { return (v - mean) * factor; });
    g.change([&](float v, int i) { return v * scales.value[i]; });
    const float sum_gz = g.sum(thread, [&](float v, int i) { return v * z.value[i]; });
    const float sum_g = centred ? g.sum(thread, [](float v, int) { return v; }) : 0;
    const RowGradient<float> gradient_of{
        .factor = factor, .average = sum_g / static_cast<float>(Row::kColumns), .parallel = along * sum_gz};
    g.change([&](float v, int i) { return gradient_of(v, z.value[i]); });
    g.write(dx + begin, lane);
  }
};

// Runs WarpNormBackward if it can do the work. Returns whether it did.
template <class T, class Dy>
bool backward_by_warps(Cuda device, const LayerNormBackward& a) {
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<Dy, double>) {
    if (a.d_dropped.defined()) return false;
    const Rows size = as_rows(a.normalised);
    const float *const x = a.normalised.data<float>(), *const weight = a.weight.data<float>();
    const Dy* const dy = a.dy.data<Dy>();
    float* const dx = a.dx.data<float>();
    return cuda::have_fours(x, weight, dy, dx) && cuda::for_fours_of_lane(size.columns, [&]<class Fours>(Fours) {
             cuda::launch(device, "layer_norm", cuda::warp_for_each_row(size.rows),
                          WarpNormBackward<Fours::value, Dy>{.x = x,
                                                             .statistics = a.statistics.data<float>(),
                                                             .weight = weight,
                                                             .dy = dy,
                                                             .dx = dx,
                                                             .rows = size.rows,
                                                             .centred = a.centred});
           });
  }
  return false;
}

template <class T>
struct WeightAndBias {
  T weight = 0, bias = 0;
  ATTUNE_DEVICE WeightAndBias operator+(const WeightAndBias& other) const {
    return {weight + other.weight, bias + other.bias};
  }
};

template <class T, class Dy>
struct ParameterGradient {
  const T* x;
  const T* statistics;
  const Dy* dy;
  int64_t columns;

  struct Read {
    T g, x, mean, factor;
  };
  ATTUNE_DEVICE Read read(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return {static_cast<T>(dy[i]), x[i], statistics[row * 3], statistics[row * 3 + 1]};
  }
  ATTUNE_DEVICE static WeightAndBias<T> value(int64_t /*row*/, int64_t /*column*/, const Read& at) {
    return {at.g * (at.x - at.mean) * at.factor, at.g};
  }

  struct FourRead {
    cuda::Four<Dy> dy;
    cuda::Four<T> x;
    T mean, factor;
  };
  bool has_fours() const { return cuda::has_fours(x) && cuda::has_fours(dy); }
  ATTUNE_DEVICE FourRead read_four(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return {cuda::read_four(dy, i), cuda::read_four(x, i), statistics[row * 3], statistics[row * 3 + 1]};
  }
  ATTUNE_DEVICE static cuda::Four<WeightAndBias<T>> value_four(int64_t row, int64_t column, const FourRead& at) {
    cuda::Four<WeightAndBias<T>> values;
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n)
      values.value[n] = value(row, column + n, {static_cast<T>(at.dy.value[n]), at.x.value[n], at.mean, at.factor});
    return values;
  }
};

template <class T>
struct StoreGradient {
  T* d_weight;
  T* d_bias;  // or null
  ATTUNE_DEVICE void operator()(int64_t column, const WeightAndBias<T>& sum) const {
    d_weight[column] = sum.weight;
    if (d_bias != nullptr) d_bias[column] = sum.bias;
  }
};

}  // namespace

void layer_norm_backward(Cuda device, const LayerNormBackward& a) {
  const Rows size = as_rows(a.normalised);
  const DType dropped = a.d_dropped.defined() ? a.d_dropped.dtype() : a.normalised.dtype();
  dispatch_floating("layer_norm", a.normalised.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", a.dy.dtype(), [&]<class Dy>(Dy) {
      const T* const x = a.normalised.data<T>();
      const T* const statistics = a.statistics.data<T>();
      // dx may be dy, so the sums over the rows come first.
      cuda::sum_columns<WeightAndBias<T>>(device, "layer_norm", size.rows, size.columns,
                                          ParameterGradient<T, Dy>{x, statistics, a.dy.data<Dy>(), size.columns},
                                          StoreGradient<T>{a.d_weight.data<T>(), data_or_null<T>(a.d_bias)});
      if (backward_by_warps<T, Dy>(device, a)) return;
      for_storage_dtype("layer_norm", dropped, [&]<class Dropped>(Dropped) {
        cuda::launch(device, "layer_norm", {.blocks = size.rows, .threads = cuda::norm_threads(size.columns)},
                     NormBackward<T, Dy, Dropped>{.x = x,
                                                  .statistics = statistics,
                                                  .weight = a.weight.data<T>(),
                                                  .dy = a.dy.data<Dy>(),
                                                  .dx = a.dx.data<T>(),
                                                  .d_dropped = data_or_null<Dropped>(a.d_dropped),
                                                  .columns = size.columns,
                                                  .centred = a.centred,
                                                  .mask = cuda::DropoutBits(a.mask)});
      });
    });
  });
}

}  // namespace attune

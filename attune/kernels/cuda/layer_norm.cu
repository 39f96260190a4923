#include "attune/kernels/layer_norm.h"

#include <cmath>

#include "attune/kernels/cuda/column_sums.h"
#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

constexpr int kNormThreads = 512;
constexpr int64_t kElementsOfThread = 4;

int norm_threads(int64_t columns) {
  return cuda::threads_for(columns, kNormThreads, kElementsOfThread);
}

// One block for each row; every thread reads and writes the same columns in each pass. Statistics are float64: a few
// operations for a row.
template <class T, class Y, class Out>
struct NormForward {
  static constexpr int kThreads = kNormThreads;
  const T* x;
  const Y* y;  // or null
  T* sum;      // or null without y
  Out* out;
  const T* weight;
  const T* bias;  // or null
  T* statistics;  // or null
  int64_t columns;
  cuda::DropoutBits mask;
  NormForm form;
  double epsilon;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t row = thread.block(), begin = row * columns;
    const T* const in = y != nullptr ? add(thread, row) : x + begin;
    const auto n = static_cast<double>(columns);
    double mean = 0;
    if (form != NormForm::rms) {
      for (int64_t c = thread.index(); c < columns; c += thread.count()) mean += static_cast<double>(in[c]);
      mean = thread.reduce(mean, cuda::Sum{}) / n;
    }
    double squares = 0;
    for (int64_t c = thread.index(); c < columns; c += thread.count()) {
      const double difference = static_cast<double>(in[c]) - mean;
      squares += difference * difference;
    }
    squares = thread.reduce(squares, cuda::Sum{});
    double factor = 1 / std::sqrt(squares / n + epsilon), along = 1 / n;
    if (form == NormForm::unbiased_std) {
      const double std = columns > 1 ? std::sqrt(squares / (n - 1)) : 0;
      factor = 1 / (std + epsilon);
      along = std > 1e-30 ? (std + epsilon) / ((n - 1) * std) : 0;
    }
    if (statistics != nullptr && thread.index() == 0) {
      statistics[row * 3] = static_cast<T>(mean);
      statistics[row * 3 + 1] = static_cast<T>(factor);
      statistics[row * 3 + 2] = static_cast<T>(along);
    }
    for (int64_t c = thread.index(); c < columns; c += thread.count()) {
      const T normal = static_cast<T>((static_cast<double>(in[c]) - mean) * factor);
      out[begin + c] = static_cast<Out>(normal * weight[c] + (bias != nullptr ? bias[c] : T{0}));
    }
  }

  // Writes x + dropout(y) and returns the row of the sum, once all threads have written their part.
  ATTUNE_DEVICE const T* add(cuda::Thread& thread, int64_t row) const {
    const int64_t begin = row * columns, quads = cuda::quads_of(columns);
    const auto scale = static_cast<T>(mask.scale());
    for (int64_t quad = thread.index(); quad < quads; quad += thread.count()) {
      const unsigned bits = mask.quad(row, quad);
      for (int k = 0; k < cuda::kQuad; ++k) {
        const int64_t c = cuda::first_column(quad) + k * cuda::kQuadStride;
        if (c >= columns) break;
        const T added = (bits >> k & 1u) != 0 ? scale * static_cast<T>(y[begin + c]) : T{0};
        sum[begin + c] = x[begin + c] + added;
      }
    }
    thread.barrier();
    return sum + begin;
  }
};

// With g = dy * weight and z the normalised row: dx = factor * (g - mean(g) - z * along * sum(g z)), where mean(g) is
// left out if the row was not centred.
template <class T, class Dy, class Dropped>
struct NormBackward {
  static constexpr int kThreads = kNormThreads;
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
    const auto scale = static_cast<T>(mask.scale());
    const int64_t quads = cuda::quads_of(columns);
    for (int64_t quad = thread.index(); quad < quads; quad += thread.count()) {
      const unsigned bits = d_dropped != nullptr ? mask.quad(row, quad) : 0;
      for (int k = 0; k < cuda::kQuad; ++k) {
        const int64_t c = cuda::first_column(quad) + k * cuda::kQuadStride;
        if (c >= columns) break;
        const T g = static_cast<T>(dy[begin + c]) * weight[c], z = (x[begin + c] - mean) * factor;
        const T gradient = factor * (g - average - z * sum_gz);
        if (d_dropped != nullptr)
          d_dropped[begin + c] = static_cast<Dropped>((bits >> k & 1u) != 0 ? gradient * scale : T{0});
        dx[begin + c] = gradient;
      }
    }
  }
};

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

void layer_norm_forward(Cuda device, const LayerNormForward& a) {
  const Rows size = as_rows(a.x);
  const DType of_y = a.y.defined() ? a.y.dtype() : a.x.dtype();
  const Tensor sum = a.y.defined() && !a.sum.defined() ? Tensor::empty_like(a.x) : a.sum;
  dispatch_floating("layer_norm", a.x.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", of_y, [&]<class Y>(Y) {
      for_storage_dtype("layer_norm", a.out.dtype(), [&]<class Out>(Out) {
        cuda::launch(device, "layer_norm", {.blocks = size.rows, .threads = norm_threads(size.columns)},
                     NormForward<T, Y, Out>{.x = a.x.data<T>(),
                                            .y = data_or_null<Y>(a.y),
                                            .sum = data_or_null<T>(sum),
                                            .out = a.out.data<Out>(),
                                            .weight = a.weight.data<T>(),
                                            .bias = data_or_null<T>(a.bias),
                                            .statistics = data_or_null<T>(a.statistics),
                                            .columns = size.columns,
                                            .mask = cuda::DropoutBits(a.mask),
                                            .form = a.options.form,
                                            .epsilon = a.options.epsilon});
      });
    });
  });
}

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
      for_storage_dtype("layer_norm", dropped, [&]<class Dropped>(Dropped) {
        cuda::launch(device, "layer_norm", {.blocks = size.rows, .threads = norm_threads(size.columns)},
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

#include "attune/kernels/layer_norm.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/gemm/column_sums.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

constexpr int kNormThreads = 512;
constexpr int64_t kElementsOfThread = 4;

int norm_threads(int64_t columns) {
  return cuda::threads_for(columns, kNormThreads, kElementsOfThread);
}

// The statistics of a row from its mean and from the sum of (x - mean)^2.
template <class T>
ATTUNE_DEVICE LayerNormStatistics<T> statistics_of(NormForm form, T mean, T squares, T columns, T epsilon) {
  if (form != NormForm::unbiased_std)
    return {.mean = mean, .factor = 1 / std::sqrt(squares / columns + epsilon), .along = 1 / columns};
  const T std = columns > 1 ? std::sqrt(squares / (columns - 1)) : T{0};
  return {.mean = mean,
          .factor = 1 / (std + epsilon),
          .along = std > T{1e-30f} ? (std + epsilon) / ((columns - 1) * std) : T{0}};
}

template <class T, class Found>
ATTUNE_DEVICE void store(T* statistics, int64_t row, const LayerNormStatistics<Found>& found) {
  statistics[row * 3] = static_cast<T>(found.mean);
  statistics[row * 3 + 1] = static_cast<T>(found.factor);
  statistics[row * 3 + 2] = static_cast<T>(found.along);
}

// With g = dy * weight and z the normalised row: dx = factor * (g - mean(g) - z * along * sum(g z)), where mean(g) is
// left out if the row was not centred.
template <class T>
struct RowGradient {
  T factor;
  T average;   // mean(g), or 0
  T parallel;  // along * sum(g z)
  ATTUNE_DEVICE T operator()(T g, T z) const { return factor * (g - average - z * parallel); }
};

// One block for each row. A thread has the same columns in every pass but add(). Statistics are float64: a few
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
    const auto found = statistics_of(form, mean, squares, n, epsilon);
    if (statistics != nullptr && thread.index() == 0) store(statistics, row, found);
    for (int64_t c = thread.index(); c < columns; c += thread.count()) {
      const T normal = static_cast<T>((static_cast<double>(in[c]) - mean) * found.factor);
      out[begin + c] = static_cast<Out>(normal * weight[c] + (bias != nullptr ? bias[c] : T{0}));
    }
  }

  // Writes x + dropout(y) and returns the row of the sum, once all threads have written their part.
  ATTUNE_DEVICE const T* add(cuda::Thread& thread, int64_t row) const {
    const int64_t begin = row * columns, quads = cuda::quads_of(columns);
    const auto scale = static_cast<T>(mask.scale());
    for (int64_t quad = thread.index(); quad < quads; quad += thread.count())
      cuda::for_columns_of_quad(columns, quad, mask.quad(row, quad), [&](int64_t c, bool kept) {
        sum[begin + c] = x[begin + c] + (kept ? scale * static_cast<T>(y[begin + c]) : T{0});
      });
    thread.barrier();
    return sum + begin;
  }
};

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

// A row in the registers of a warp, as float32: each lane has kFours fours of it, kWarp fours apart.
template <int kFours>
struct WarpRow {
  static constexpr int64_t kColumns = kFours * 4 * cuda::kWarp;
  static constexpr int kOfLane = 4 * kFours;
  float value[static_cast<size_t>(kOfLane)] = {};

  template <class T>
  ATTUNE_DEVICE static WarpRow read(const T* from, int lane) {
    WarpRow row;
    ATTUNE_UNROLL for (int k = 0; k < kFours; ++k) {
      const cuda::Four<T> four = cuda::read_four(from, 4 * (k * cuda::kWarp + lane));
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) row.value[4 * k + i] = static_cast<float>(four.value[i]);
    }
    return row;
  }
  template <class T>
  ATTUNE_DEVICE void write(T* to, int lane) const {
    ATTUNE_UNROLL for (int k = 0; k < kFours; ++k) {
      cuda::Four<T> four;
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) four.value[i] = static_cast<T>(value[4 * k + i]);
      cuda::write_four(to, 4 * (k * cuda::kWarp + lane), four);
    }
  }
  // Sets each number to f(number, i), where i is its place in `value`.
  template <class F>
  ATTUNE_DEVICE void change(F&& f) {
    ATTUNE_UNROLL for (int i = 0; i < kOfLane; ++i) value[i] = f(value[i], i);
  }
  // The sum of f(number, i) over the row.
  template <class F>
  ATTUNE_DEVICE float sum(cuda::Thread& thread, F&& f) const {
    float all = 0;
    ATTUNE_UNROLL for (int i = 0; i < kOfLane; ++i) all += f(value[i], i);
    return thread.warp_reduce(all, cuda::Sum{});
  }
};

constexpr int kWarpNormThreads = 256;

// NormForward without dropout, one warp for each row: it reads a row once and needs no barrier.
template <int kFours, class Y, class Out>
struct WarpNormForward {
  static constexpr int kThreads = kWarpNormThreads;
  const float* x;
  const Y* y;  // or null
  float* sum;  // or null
  Out* out;
  const float* weight;
  const float* bias;  // or null
  float* statistics;  // or null
  int64_t rows;
  NormForm form;
  float epsilon;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    using Row = WarpRow<kFours>;
    const int64_t row = thread.block() * thread.warps() + thread.warp(), begin = row * Row::kColumns;
    const int lane = thread.lane();
    if (row >= rows) return;  // the whole warp
    Row in = Row::read(x + begin, lane);
    if (y != nullptr) {
      const Row added = Row::read(y + begin, lane);
      in.change([&](float v, int i) { return v + added.value[i]; });
      if (sum != nullptr) in.write(sum + begin, lane);
    }
    constexpr auto kColumns = static_cast<float>(Row::kColumns);
    float mean = 0;
    if (form != NormForm::rms) {
      // With the first number subtracted first, the mean of equal numbers is exact.
      const float first = thread.shuffle(in.value[0], 0);
      mean = first + in.sum(thread, [&](float v, int) { return v - first; }) / kColumns;
    }
    const float squares = in.sum(thread, [&](float v, int) { return (v - mean) * (v - mean); });
    const auto found = statistics_of(form, mean, squares, kColumns, epsilon);
    if (statistics != nullptr && lane == 0) store(statistics, row, found);
    const Row scales = Row::read(weight, lane), shifts = bias != nullptr ? Row::read(bias, lane) : Row{};
    in.change([&](float v, int i) { return (v - mean) * found.factor * scales.value[i] + shifts.value[i]; });
    in.write(out + begin, lane);
  }
};

// NormBackward without dropout, one warp for each row.
template <int kFours, class Dy>
struct WarpNormBackward {
  static constexpr int kThreads = kWarpNormThreads;
  const float* x;
  const float* statistics;
  const float* weight;
  const Dy* dy;
  float* dx;
  int64_t rows;
  bool centred;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    using Row = WarpRow<kFours>;
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

// Calls f with the number of fours that each lane of a warp has of a row, as a constant, and returns true. Returns
// false if a warp cannot hold such rows: it holds those of 128, 256, ... 1024 columns.
template <class F, int... kBefore>
bool for_fours_of_lane(int64_t columns, std::integer_sequence<int, kBefore...> /*numbers*/, F&& f) {
  return ((columns == WarpRow<kBefore + 1>::kColumns && (f(std::integral_constant<int, kBefore + 1>{}), true)) || ...);
}
template <class F>
bool for_fours_of_lane(int64_t columns, F&& f) {
  return for_fours_of_lane(columns, std::make_integer_sequence<int, 8>{}, std::forward<F>(f));
}

cuda::LaunchShape warp_for_each_row(int64_t rows) {
  constexpr int64_t kRowsOfBlock = kWarpNormThreads / cuda::kWarp;
  return {.blocks = (rows + kRowsOfBlock - 1) / kRowsOfBlock, .threads = kWarpNormThreads};
}

template <class... T>
bool have_fours(const T*... pointers) {
  return (cuda::has_fours(pointers) && ...);
}

// Runs WarpNormForward if it can do the work. Returns whether it did.
template <class T, class Y, class Out>
bool forward_by_warps(Cuda device, const LayerNormForward& a) {
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<Y, double> && !std::is_same_v<Out, double>) {
    const auto epsilon = static_cast<float>(a.options.epsilon);
    const bool dropout = a.y.defined() && a.mask.active();
    if (dropout || epsilon < std::numeric_limits<float>::min()) return false;
    const Rows size = as_rows(a.x);
    const float *const x = a.x.data<float>(), *const weight = a.weight.data<float>();
    const float* const bias = data_or_null<float>(a.bias);
    const Y* const y = data_or_null<Y>(a.y);
    float* const sum = data_or_null<float>(a.sum);
    Out* const out = a.out.data<Out>();
    return have_fours(x, y, sum, out, weight, bias) && for_fours_of_lane(size.columns, [&]<class Fours>(Fours) {
             cuda::launch(device, "layer_norm", warp_for_each_row(size.rows),
                          WarpNormForward<Fours::value, Y, Out>{.x = x,
                                                                .y = y,
                                                                .sum = sum,
                                                                .out = out,
                                                                .weight = weight,
                                                                .bias = bias,
                                                                .statistics = data_or_null<float>(a.statistics),
                                                                .rows = size.rows,
                                                                .form = a.options.form,
                                                                .epsilon = epsilon});
           });
  }
  return false;
}

// Runs WarpNormBackward if it can do the work. Returns whether it did.
template <class T, class Dy>
bool backward_by_warps(Cuda device, const LayerNormBackward& a) {
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<Dy, double>) {
    if (a.d_dropped.defined()) return false;
    const Rows size = as_rows(a.normalised);
    const float *const x = a.normalised.data<float>(), *const weight = a.weight.data<float>();
    const Dy* const dy = a.dy.data<Dy>();
    float* const dx = a.dx.data<float>();
    return have_fours(x, weight, dy, dx) && for_fours_of_lane(size.columns, [&]<class Fours>(Fours) {
             cuda::launch(device, "layer_norm", warp_for_each_row(size.rows),
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

void layer_norm_forward(Cuda device, const LayerNormForward& a) {
  const Rows size = as_rows(a.x);
  const DType of_y = a.y.defined() ? a.y.dtype() : a.x.dtype();
  dispatch_floating("layer_norm", a.x.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", of_y, [&]<class Y>(Y) {
      for_storage_dtype("layer_norm", a.out.dtype(), [&]<class Out>(Out) {
        if (forward_by_warps<T, Y, Out>(device, a)) return;
        const Tensor sum = a.y.defined() && !a.sum.defined() ? Tensor::empty_like(a.x) : a.sum;
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
      if (backward_by_warps<T, Dy>(device, a)) return;
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

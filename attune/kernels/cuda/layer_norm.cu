#include "attune/kernels/layer_norm.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/norm_rows.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

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

// One block for each row. A thread has the same columns in every pass but add(). Statistics are float64: a few
// operations for a row.
template <class T, class Y, class Out>
struct NormForward {
  static constexpr int kThreads = cuda::kNormThreads;
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

// NormForward without dropout, one warp for each row: it reads a row once and needs no barrier.
template <int kFours, class Y, class Out>
struct WarpNormForward {
  static constexpr int kThreads = cuda::kWarpNormThreads;
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
    using Row = cuda::WarpRow<kFours>;
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
    return cuda::have_fours(x, y, sum, out, weight, bias) &&
           cuda::for_fours_of_lane(size.columns, [&]<class Fours>(Fours) {
             cuda::launch(device, "layer_norm", cuda::warp_for_each_row(size.rows),
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

}  // namespace

void layer_norm_forward(Cuda device, const LayerNormForward& a) {
  const Rows size = as_rows(a.x);
  const DType of_y = a.y.defined() ? a.y.dtype() : a.x.dtype();
  dispatch_floating("layer_norm", a.x.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", of_y, [&]<class Y>(Y) {
      for_storage_dtype("layer_norm", a.out.dtype(), [&]<class Out>(Out) {
        if (forward_by_warps<T, Y, Out>(device, a)) return;
        const Tensor sum = a.y.defined() && !a.sum.defined() ? Tensor::empty_like(a.x) : a.sum;
        cuda::launch(device, "layer_norm", {.blocks = size.rows, .threads = cuda::norm_threads(size.columns)},
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

}  // namespace attune

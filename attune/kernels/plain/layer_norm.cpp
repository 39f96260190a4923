#include "attune/kernels/layer_norm.h"

#include <cmath>

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// The statistics that normalise a row, in float64.
LayerNormStatistics<double> row_statistics(const auto* x, int64_t columns, const LayerNormOptions& options) {
  const auto n = static_cast<double>(columns);
  double mean = 0, squares = 0;
  if (options.form != NormForm::rms) {
    for (int64_t i = 0; i < columns; ++i) mean += x[i] / n;
  }
  for (int64_t i = 0; i < columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
  if (options.form != NormForm::unbiased_std) return {mean, 1 / std::sqrt(squares / n + options.epsilon), 1 / n};
  const double std = columns > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return {mean, 1 / (std + options.epsilon), std > 1e-30 ? (std + options.epsilon) / ((n - 1) * std) : 0};
}

template <class T, class Y, class Out>
void forward_row(const LayerNormForward& a, int64_t row, int64_t columns) {
  const auto in_row = [&](const Tensor& t) { return t.data<T>() + row * columns; };
  std::vector<T> input(in_row(a.x), in_row(a.x) + columns);
  if (a.y.defined()) {
    for (int64_t i = 0; i < columns; ++i) {
      const double scale = a.mask.active() ? a.mask.scale() : 1;
      const auto y = static_cast<double>(a.y.data<Y>()[row * columns + i]);
      input[static_cast<size_t>(i)] += static_cast<T>(keep_mask(a.mask, row, i) ? scale * y : 0);
      if (a.sum.defined()) in_row(a.sum)[i] = input[static_cast<size_t>(i)];
    }
  }
  const LayerNormStatistics<double> s = row_statistics(input.data(), columns, a.options);
  if (a.statistics.defined()) {
    T* const kept = a.statistics.data<T>() + row * 3;
    kept[0] = static_cast<T>(s.mean);
    kept[1] = static_cast<T>(s.factor);
    kept[2] = static_cast<T>(s.along);
  }
  for (int64_t i = 0; i < columns; ++i) {
    const double normal = (input[static_cast<size_t>(i)] - s.mean) * s.factor;
    const double bias = a.bias.defined() ? static_cast<double>(a.bias.data<T>()[i]) : 0;
    a.out.data<Out>()[row * columns + i] = static_cast<Out>(normal * a.weight.data<T>()[i] + bias);
  }
}

// With g = dy * weight and z the normalised row: dx = factor * (g - mean(g) - z * along * sum(g z)), where mean(g) is
// left out if the row was not centred.
template <class T, class Dy, class Dropped>
void backward_row(const LayerNormBackward& a, int64_t row, int64_t columns) {
  const T* const x = a.normalised.data<T>() + row * columns;
  const Dy* const dy = a.dy.data<Dy>() + row * columns;
  const T* const statistics = a.statistics.data<T>() + row * 3;
  const double mean = statistics[0], factor = statistics[1], along = statistics[2];
  double sum_g = 0, sum_gz = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double g = static_cast<double>(dy[i]) * a.weight.data<T>()[i], z = (x[i] - mean) * factor;
    sum_g += g;
    sum_gz += g * z;
  }
  const double average = a.centred ? sum_g / static_cast<double>(columns) : 0;
  for (int64_t i = 0; i < columns; ++i) {
    const auto v = static_cast<double>(dy[i]);
    const double g = v * a.weight.data<T>()[i], z = (x[i] - mean) * factor;
    const double dx = factor * (g - average - z * along * sum_gz);
    a.dx.data<T>()[row * columns + i] = static_cast<T>(dx);
    a.d_weight.data<T>()[i] += static_cast<T>(v * z);
    if (a.d_bias.defined()) a.d_bias.data<T>()[i] += static_cast<T>(v);
    if (a.d_dropped.defined())
      a.d_dropped.data<Dropped>()[row * columns + i] =
          static_cast<Dropped>(keep_mask(a.mask, row, i) ? dx * a.mask.scale() : 0);
  }
}

}  // namespace

void layer_norm_forward(Plain, const LayerNormForward& a) {
  const Rows size = as_rows(a.x);
  const DType of_y = a.y.defined() ? a.y.dtype() : a.x.dtype();
  dispatch_floating("layer_norm", a.x.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", of_y, [&]<class Y>(Y) {
      for_storage_dtype("layer_norm", a.out.dtype(), [&]<class Out>(Out) {
        for (int64_t row = 0; row < size.rows; ++row) forward_row<T, Y, Out>(a, row, size.columns);
      });
    });
  });
}

void layer_norm_backward(Plain, const LayerNormBackward& a) {
  const Rows size = as_rows(a.normalised);
  const DType dropped = a.d_dropped.defined() ? a.d_dropped.dtype() : a.normalised.dtype();
  dispatch_floating("layer_norm", a.normalised.dtype(), [&]<class T>(T) {
    for_storage_dtype("layer_norm", a.dy.dtype(), [&]<class Dy>(Dy) {
      for_storage_dtype("layer_norm", dropped, [&]<class Dropped>(Dropped) {
        for (int64_t i = 0; i < size.columns; ++i) {
          a.d_weight.data<T>()[i] = 0;
          if (a.d_bias.defined()) a.d_bias.data<T>()[i] = 0;
        }
        for (int64_t row = 0; row < size.rows; ++row) backward_row<T, Dy, Dropped>(a, row, size.columns);
      });
    });
  });
}

}  // namespace attune

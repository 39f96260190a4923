#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/layer_norm.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/cpu/gemm/column_sums.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/layer_norm.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

#ifndef ATTUNE_KERNELS_CPU_LAYER_NORM_POINTERS
#define ATTUNE_KERNELS_CPU_LAYER_NORM_POINTERS
namespace attune {
namespace {

// The tensors of LayerNormForward as pointers. y, bias and statistics may be null; sum too if Out is T. T is the type
// of the arithmetic, Y that of y, Out that of the result.
template <class T, class Y = T, class Out = T>
struct ForwardPointers {
  int64_t rows, columns;
  const T* x;
  const Y* y;
  DropoutMask mask;
  const T* weight;
  const T* bias;  // or null
  LayerNormOptions options;
  T* sum;  // may be null if Out is T
  Out* out;
  LayerNormStatistics<T>* statistics;  // [rows], or null
};

// The tensors of LayerNormBackward as pointers; d_dropped and d_bias may be null. Dy is the type of dy, Dropped that of
// d_dropped.
template <class T, class Dy = T, class Dropped = T>
struct BackwardPointers {
  int64_t rows, columns;
  const T* normalised;  // the input of the normalisation: x or the sum
  const LayerNormStatistics<T>* statistics;
  const T* weight;
  const Dy* dy;
  DropoutMask mask;
  bool centred;  // the mean was subtracted: in every form but rms
  T* dx;
  Dropped* d_dropped;
  T* d_weight;
  T* d_bias;
};

}  // namespace
}  // namespace attune
#endif

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE LayerNormStatistics<T> RmsStatistics(const T* x, size_t columns, double epsilon) {
  const hn::ScalableTag<T> d;
  const auto n = static_cast<double>(columns);
  T squares[1];
  Sums(d, columns, squares, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto v = part.Load(d, x + i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  });
  return {T{0}, static_cast<T>(1 / std::sqrt(squares[0] / n + epsilon)), static_cast<T>(1 / n)};
}

template <class T>
HWY_INLINE LayerNormStatistics<T> RowStatistics(const T* x, size_t columns, const LayerNormOptions& options) {
  if (options.form == NormForm::rms) return RmsStatistics(x, columns, options.epsilon);
  const hn::ScalableTag<T> d;
  const auto n = static_cast<double>(columns);
  T total[1];
  Sums(d, columns, total,
       [&](size_t i, auto part, auto& sums) HWY_ATTR { sums[0] = hn::Add(sums[0], part.Load(d, x + i)); });
  // The second pass also corrects the rounding error of the mean. In a row of large, almost equal values that error
  // would count as variance.
  const auto rough = static_cast<T>(total[0] / n);
  const auto centre = hn::Set(d, rough);
  T moments[2];
  Sums(d, columns, moments, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto c = part.OrElse(d, hn::Sub(part.Load(d, x + i), centre), T{0});
    sums[0] = hn::Add(sums[0], c);
    sums[1] = hn::MulAdd(c, c, sums[1]);
  });
  const double shift = moments[0] / n;
  const double squares = std::max(0.0, moments[1] - n * shift * shift);
  double factor = 0;
  double along = 0;
  if (options.form == NormForm::unbiased_std) {
    // d std / d x = (x - mean) / ((n - 1) std), and 0 for a constant row.
    const double std = columns > 1 ? std::sqrt(squares / (n - 1)) : 0;
    factor = 1 / (std + options.epsilon);
    along = std > 1e-30 ? (std + options.epsilon) / ((n - 1) * std) : 0;
  } else {
    factor = 1 / std::sqrt(squares / n + options.epsilon);
    along = 1 / n;
  }
  return {static_cast<T>(rough + shift), static_cast<T>(factor), static_cast<T>(along)};
}

template <class T, class Y, class Out>
void ForwardRows(const ForwardPointers<T, Y, Out>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(a.columns);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * a.columns;
    Out* out = a.out + at;
    const T* x = a.x + at;
    if (a.y != nullptr) {  // without a tensor for the sum, the memory of the result holds it
      T* sum = a.sum + at;
      if constexpr (std::is_same_v<T, Out>) sum = a.sum != nullptr ? sum : out;
      DropoutRow(x, a.y + at, sum, a.mask, row, columns);
      x = sum;
    }
    const LayerNormStatistics<T> statistics = RowStatistics(x, columns, a.options);
    if (a.statistics != nullptr) a.statistics[row] = statistics;
    const auto mean = hn::Set(d, statistics.mean);
    const auto factor = hn::Set(d, statistics.factor);
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(part.Load(d, x + i), mean), factor);
      const auto bias = a.bias != nullptr ? part.Load(d, a.bias + i) : hn::Zero(d);
      StoreAs(d, part, hn::MulAdd(normal, part.Load(d, a.weight + i), bias), out + i);
    });
  }
}

// With g = dy * weight and z the normalised row: dx = factor * (g - mean(g) - z * along * sum(g z)), where mean(g) is
// left out if the row was not centred. Adds dy * z to d_weight and dy to d_bias, unless d_bias is null.
template <class T, class Dy, class Dropped>
HWY_INLINE void BackwardRow(const BackwardPointers<T, Dy, Dropped>& a, int64_t row, T* HWY_RESTRICT d_weight,
                            T* HWY_RESTRICT d_bias) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(a.columns);
  const T* x = a.normalised + row * a.columns;
  const Dy* dy = a.dy + row * a.columns;
  T* dx = a.dx + row * a.columns;
  const LayerNormStatistics<T>& statistics = a.statistics[row];
  const auto mean = hn::Set(d, statistics.mean);
  const auto factor = hn::Set(d, statistics.factor);
  T totals[2];
  Sums(d, columns, totals, [&](size_t i, auto part, auto& sums) HWY_ATTR {
    const auto g = hn::Mul(LoadAs(d, part, dy + i), part.Load(d, a.weight + i));  // zeros beyond the end of the row
    const auto z = hn::Mul(hn::Sub(part.Load(d, x + i), mean), factor);
    sums[0] = hn::Add(sums[0], g);
    sums[1] = hn::MulAdd(g, z, sums[1]);
  });
  const auto average = hn::Set(d, a.centred ? totals[0] / static_cast<T>(columns) : T{0});
  const auto slope = hn::Set(d, totals[1] * statistics.along);
  ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
    const auto v = LoadAs(d, part, dy + i);
    const auto g = hn::Mul(v, part.Load(d, a.weight + i));
    const auto z = hn::Mul(hn::Sub(part.Load(d, x + i), mean), factor);
    part.Store(d, hn::Mul(factor, hn::NegMulAdd(z, slope, hn::Sub(g, average))), dx + i);
    part.Store(d, hn::MulAdd(v, z, part.Load(d, d_weight + i)), d_weight + i);
    if (d_bias != nullptr) part.Store(d, hn::Add(part.Load(d, d_bias + i), v), d_bias + i);
  });
  if (a.d_dropped != nullptr)
    DropoutRow(static_cast<const T*>(nullptr), dx, a.d_dropped + row * a.columns, a.mask, row, columns);
}

template <class T, class Dy, class Dropped>
void BackwardRows(const BackwardPointers<T, Dy, Dropped>& a, int64_t begin, int64_t end, T* d_weight, T* d_bias) {
  std::fill_n(d_weight, a.columns, T{0});
  if (d_bias != nullptr) std::fill_n(d_bias, a.columns, T{0});
  for (int64_t row = begin; row < end; ++row) BackwardRow(a, row, d_weight, d_bias);
}

void ForwardRows32(const ForwardPointers<float>& a, int64_t begin, int64_t end) {
  ForwardRows(a, begin, end);
}
void ForwardRows64(const ForwardPointers<double>& a, int64_t begin, int64_t end) {
  ForwardRows(a, begin, end);
}
void ForwardRowsWidening(const ForwardPointers<float, bfloat16>& a, int64_t begin, int64_t end) {
  ForwardRows(a, begin, end);
}
void ForwardRowsNarrowing(const ForwardPointers<float, float, bfloat16>& a, int64_t begin, int64_t end) {
  ForwardRows(a, begin, end);
}
void BackwardRows32(const BackwardPointers<float>& a, int64_t begin, int64_t end, float* d_weight, float* d_bias) {
  BackwardRows(a, begin, end, d_weight, d_bias);
}
void BackwardRows64(const BackwardPointers<double>& a, int64_t begin, int64_t end, double* d_weight, double* d_bias) {
  BackwardRows(a, begin, end, d_weight, d_bias);
}

void BackwardRowsWidening(const BackwardPointers<float, bfloat16>& a, int64_t begin, int64_t end, float* d_weight,
                          float* d_bias) {
  BackwardRows(a, begin, end, d_weight, d_bias);
}
void BackwardRowsNarrowing(const BackwardPointers<float, float, bfloat16>& a, int64_t begin, int64_t end,
                           float* d_weight, float* d_bias) {
  BackwardRows(a, begin, end, d_weight, d_bias);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(ForwardRows32);
HWY_EXPORT(ForwardRows64);
HWY_EXPORT(BackwardRows32);
HWY_EXPORT(BackwardRows64);
HWY_EXPORT(ForwardRowsWidening);
HWY_EXPORT(ForwardRowsNarrowing);
HWY_EXPORT(BackwardRowsWidening);
HWY_EXPORT(BackwardRowsNarrowing);

template <class Arguments, class Kernel>
void run_forward(const Arguments& a, Kernel kernel) {
  parallel_for(a.rows, row_grain(a.columns), [&](int64_t begin, int64_t end) { kernel(a, begin, end); });
}

// The partial sums of d_weight and, if there is one, of d_bias: [blocks, 1 or 2, columns].
template <class T, class Dy, class Dropped, class Kernel>
void run_backward(const BackwardPointers<T, Dy, Dropped>& a, Kernel kernel) {
  const int64_t block = cpu::column_block_rows(a.rows);
  const int64_t blocks = divide_up(a.rows, block);
  const int64_t width = a.d_bias != nullptr ? 2 * a.columns : a.columns;
  const auto buffer = allocate_buffer(static_cast<size_t>((blocks + 1) * width) * sizeof(T));
  T* partial = static_cast<T*>(buffer->data());
  parallel_for(a.rows, block, [&](int64_t begin, int64_t end) {
    T* sums = partial + begin / block * width;
    kernel(a, begin, end, sums, a.d_bias != nullptr ? sums + a.columns : nullptr);
  });
  T* total = partial + blocks * width;
  cpu::column_sums(partial, blocks, width, total, false);
  std::copy_n(total, a.columns, a.d_weight);
  if (a.d_bias != nullptr) std::copy_n(total + a.columns, a.columns, a.d_bias);
}

template <class T>
LayerNormStatistics<T>* statistics_of(const Tensor& t) {
  static_assert(sizeof(LayerNormStatistics<T>) == 3 * sizeof(T));
  return t.defined() ? reinterpret_cast<LayerNormStatistics<T>*>(t.data<T>()) : nullptr;
}

template <class T, class Y, class Out>
ForwardPointers<T, Y, Out> pointers(const LayerNormForward& a) {
  const auto [rows, columns] = as_rows(a.x);
  return {.rows = rows,
          .columns = columns,
          .x = a.x.data<T>(),
          .y = data_or_null<Y>(a.y),
          .mask = a.mask,
          .weight = a.weight.data<T>(),
          .bias = data_or_null<T>(a.bias),
          .options = a.options,
          .sum = data_or_null<T>(a.sum),
          .out = a.out.data<Out>(),
          .statistics = statistics_of<T>(a.statistics)};
}

template <class T, class Dy, class Dropped>
BackwardPointers<T, Dy, Dropped> pointers(const LayerNormBackward& a) {
  const auto [rows, columns] = as_rows(a.normalised);
  return {.rows = rows,
          .columns = columns,
          .normalised = a.normalised.data<T>(),
          .statistics = statistics_of<T>(a.statistics),
          .weight = a.weight.data<T>(),
          .dy = a.dy.data<Dy>(),
          .mask = a.mask,
          .centred = a.centred,
          .dx = a.dx.data<T>(),
          .d_dropped = data_or_null<Dropped>(a.d_dropped),
          .d_weight = a.d_weight.data<T>(),
          .d_bias = data_or_null<T>(a.d_bias)};
}

}  // namespace

void layer_norm_forward(Cpu, const LayerNormForward& a) {
  if (a.x.dtype() == DType::f64)
    return run_forward(pointers<double, double, double>(a), HWY_DYNAMIC_DISPATCH(ForwardRows64));
  if (a.y.defined() && a.y.dtype() == DType::bf16)
    return run_forward(pointers<float, bfloat16, float>(a), HWY_DYNAMIC_DISPATCH(ForwardRowsWidening));
  if (a.out.dtype() == DType::bf16)
    return run_forward(pointers<float, float, bfloat16>(a), HWY_DYNAMIC_DISPATCH(ForwardRowsNarrowing));
  run_forward(pointers<float, float, float>(a), HWY_DYNAMIC_DISPATCH(ForwardRows32));
}

void layer_norm_backward(Cpu, const LayerNormBackward& a) {
  if (a.normalised.dtype() == DType::f64)
    return run_backward(pointers<double, double, double>(a), HWY_DYNAMIC_DISPATCH(BackwardRows64));
  if (a.dy.dtype() == DType::bf16)
    return run_backward(pointers<float, bfloat16, float>(a), HWY_DYNAMIC_DISPATCH(BackwardRowsWidening));
  if (a.d_dropped.defined() && a.d_dropped.dtype() == DType::bf16)
    return run_backward(pointers<float, float, bfloat16>(a), HWY_DYNAMIC_DISPATCH(BackwardRowsNarrowing));
  run_backward(pointers<float, float, float>(a), HWY_DYNAMIC_DISPATCH(BackwardRows32));
}

}  // namespace attune
#endif

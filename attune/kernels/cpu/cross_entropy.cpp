#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/cross_entropy_pointers.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/softmax_inl.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// With s = log(sum(exp(x))): -log p[c] = s - x[c], so that the mean over the classes is s - mean(x). Writes the
// exponentials to `terms` unless it is null; `terms` may be x.
template <class T>
CrossEntropyRow RowLoss(const T* x, int32_t label, size_t columns, double smoothing, T* terms) {
  const hn::ScalableTag<T> d;
  CrossEntropyRow result;
  const T shift = RowShift(x, columns);
  const T at_label = x[label];
  result.correct = at_label == shift && std::find(x, x + label, shift) == x + label ? 1 : 0;
  T total[1] = {0};
  if (smoothing > 0)
    Sums(d, columns, total,
         [&](size_t i, auto part, auto& sums) HWY_ATTR { sums[0] = hn::Add(sums[0], part.Load(d, x + i)); });
  const T sum = SumOfExponentials(x, shift, columns, terms);
  const double log_sum = shift + std::log(static_cast<double>(sum));
  result.shift = shift;
  result.sum = sum;
  result.negative_log_likelihood = log_sum - at_label;
  result.loss = result.negative_log_likelihood;
  if (smoothing > 0) {
    const double all = log_sum - total[0] / static_cast<double>(columns);
    result.loss = (1 - smoothing) * result.negative_log_likelihood + smoothing * all;
  }
  return result;
}

template <class T>
void LossRows(const CrossEntropyPointers<T>& in, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int32_t label = in.labels[row];
    in.results[row] = label == in.ignore_index
                          ? CrossEntropyRow{}
                          : RowLoss<T>(in.logits + row * in.row_size, label, static_cast<size_t>(in.columns),
                                       in.label_smoothing, nullptr);
  }
}

// scale * (p - epsilon / columns - (1 - epsilon) [c = label])
template <class T>
void GradientRows(const CrossEntropyPointers<T>& in, const CrossEntropyGradient<T>& out, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(in.columns);
  const auto uniform = hn::Set(d, static_cast<T>(out.scale * in.label_smoothing / static_cast<double>(columns)));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = in.logits + row * in.row_size;
    T* dx = out.d_logits + row * in.row_size;
    const int32_t label = in.labels[row];
    if (label == in.ignore_index) {
      std::fill_n(dx, in.row_size, T{0});
      continue;
    }
    const auto shift = hn::Set(d, static_cast<T>(in.results[row].shift));
    const auto factor = hn::Set(d, static_cast<T>(out.scale / in.results[row].sum));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const auto e = ExpOf(d, hn::Sub(part.Load(d, x + i), shift));
      part.Store(d, hn::MulSub(e, factor, uniform), dx + i);
    });
    dx[label] -= static_cast<T>(out.scale * (1 - in.label_smoothing));
    std::fill(dx + columns, dx + in.row_size, T{0});
  }
}

// Forms the loss and the gradient of one row after the other, so that its exponentials are formed once and in cache.
template <class T, class Out>
void LossAndGradientRows(const CrossEntropyPointers<T>& in, const CrossEntropyGradient<Out>& out, int64_t begin,
                         int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(in.columns);
  const auto uniform = hn::Set(d, static_cast<T>(out.scale * in.label_smoothing / static_cast<double>(columns)));
  for (int64_t row = begin; row < end; ++row) {
    T* x = in.logits + row * in.row_size;
    Out* dx = out.d_logits + row * in.row_size;
    const int32_t label = in.labels[row];
    if (label == in.ignore_index) {
      in.results[row] = {};
      std::fill_n(dx, in.row_size, Out{});
      continue;
    }
    in.results[row] = RowLoss<T>(x, label, columns, in.label_smoothing, x);
    const T weight = static_cast<T>(out.scale / in.results[row].sum);
    const auto factor = hn::Set(d, weight);
    // Subtracts before rounding: for a label that is almost certain, p - 1 is small.
    const T at_label = x[label] * weight -
                       static_cast<T>(out.scale * in.label_smoothing / static_cast<double>(columns)) -
                       static_cast<T>(out.scale * (1 - in.label_smoothing));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      StoreAs(d, part, hn::MulSub(part.Load(d, x + i), factor, uniform), dx + i);
    });
    dx[label] = static_cast<Out>(at_label);
    std::fill(dx + columns, dx + in.row_size, Out{});
  }
}

void LossRows32(const CrossEntropyPointers<float>& in, int64_t begin, int64_t end) {
  LossRows(in, begin, end);
}
void LossRows64(const CrossEntropyPointers<double>& in, int64_t begin, int64_t end) {
  LossRows(in, begin, end);
}
void GradientRows32(const CrossEntropyPointers<float>& in, const CrossEntropyGradient<float>& out, int64_t begin,
                    int64_t end) {
  GradientRows(in, out, begin, end);
}
void GradientRows64(const CrossEntropyPointers<double>& in, const CrossEntropyGradient<double>& out, int64_t begin,
                    int64_t end) {
  GradientRows(in, out, begin, end);
}
void LossAndGradientRows32(const CrossEntropyPointers<float>& in, const CrossEntropyGradient<float>& out, int64_t begin,
                           int64_t end) {
  LossAndGradientRows(in, out, begin, end);
}
void LossAndGradientRows64(const CrossEntropyPointers<double>& in, const CrossEntropyGradient<double>& out,
                           int64_t begin, int64_t end) {
  LossAndGradientRows(in, out, begin, end);
}
void LossAndGradientRows16(const CrossEntropyPointers<float>& in, const CrossEntropyGradient<bfloat16>& out,
                           int64_t begin, int64_t end) {
  LossAndGradientRows(in, out, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(LossRows32);
HWY_EXPORT(LossRows64);
HWY_EXPORT(GradientRows32);
HWY_EXPORT(GradientRows64);
HWY_EXPORT(LossAndGradientRows32);
HWY_EXPORT(LossAndGradientRows64);
HWY_EXPORT(LossAndGradientRows16);

}  // namespace

void cross_entropy_forward(Cpu, const CrossEntropyInputs& in, const Tensor& results) {
  dispatch_floating("cross_entropy", in.logits.dtype(), [&]<class T>(T) {
    const CrossEntropyPointers<T> rows = cross_entropy_pointers<T>(in, results);
    parallel_for(rows.rows, row_grain(rows.columns), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(LossRows32), HWY_DYNAMIC_DISPATCH(LossRows64))(rows, begin, end);
    });
  });
}

void cross_entropy_backward(Cpu, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits) {
  dispatch_floating("cross_entropy", in.logits.dtype(), [&]<class T>(T) {
    const CrossEntropyPointers<T> rows = cross_entropy_pointers<T>(in, results);
    const CrossEntropyGradient<T> out{.scale = scale, .d_logits = d_logits.data<T>()};
    parallel_for(rows.rows, row_grain(rows.columns), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(GradientRows32), HWY_DYNAMIC_DISPATCH(GradientRows64))(rows, out, begin, end);
    });
  });
}

void cross_entropy_loss(Cpu, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits) {
  with_gradient_types("cross_entropy", in.logits, d_logits, [&]<class T, class Out>(T, Out) {
    const CrossEntropyPointers<T> rows = cross_entropy_pointers<T>(in, results);
    const CrossEntropyGradient<Out> out{.scale = scale, .d_logits = d_logits.data<Out>()};
    const auto run =
        for_types<T, Out>(HWY_DYNAMIC_DISPATCH(LossAndGradientRows32), HWY_DYNAMIC_DISPATCH(LossAndGradientRows64),
                          HWY_DYNAMIC_DISPATCH(LossAndGradientRows16));
    parallel_for(rows.rows, row_grain(rows.columns), [&](int64_t begin, int64_t end) { run(rows, out, begin, end); });
  });
}

void cross_entropy_totals(Cpu, const Tensor& results, const Tensor& totals) {
  const CrossEntropyRow* const rows = cross_entropy_rows(results);
  CrossEntropyRow sum;
  for (int64_t i = 0; i < results.size(0); ++i) {
    sum.loss += rows[i].loss;
    sum.negative_log_likelihood += rows[i].negative_log_likelihood;
    sum.shift += rows[i].shift;
    sum.sum += rows[i].sum;
    sum.correct += rows[i].correct;
    sum.divergence += rows[i].divergence;
  }
  *cross_entropy_rows(totals) = sum;
}

}  // namespace attune
#endif

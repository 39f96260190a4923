#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/softmax_inl.h"
#include "attune/kernels/cross_entropy.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// With s = log(sum(exp(x))): -log p[c] = s - x[c], so that the mean over the classes is s - mean(x). The exponentials
// are written to `terms` unless that is null; terms may be x.
template <class T>
CrossEntropyRow RowLoss(const T* x, int32_t label, size_t columns, double smoothing, T* terms) {
  const hn::ScalableTag<T> d;
  CrossEntropyRow result;
  const T shift = RowShift(x, columns);
  const T at_label = x[label];
  result.correct = at_label == shift && std::find(x, x + label, shift) == x + label;
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
void LossRows(const CrossEntropyRows<T>& in, CrossEntropyRow* results, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int32_t label = in.labels[row];
    results[row] = label == in.ignore_index
                       ? CrossEntropyRow{}
                       : RowLoss(in.logits + row * in.columns, label, static_cast<size_t>(in.columns),
                                 in.label_smoothing, static_cast<T*>(nullptr));
  }
}

// scale * (p - epsilon / columns - (1 - epsilon) [c = label])
template <class T>
void GradientRows(const CrossEntropyRows<T>& in, const CrossEntropyRow* results, double scale, T* d_logits,
                  int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(in.columns);
  const auto uniform = hn::Set(d, static_cast<T>(scale * in.label_smoothing / static_cast<double>(columns)));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = in.logits + row * in.columns;
    T* dx = d_logits + row * in.columns;
    const int32_t label = in.labels[row];
    if (label == in.ignore_index) {
      std::fill_n(dx, columns, T{0});
      continue;
    }
    const auto shift = hn::Set(d, static_cast<T>(results[row].shift));
    const auto factor = hn::Set(d, static_cast<T>(scale / results[row].sum));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const auto e = ExpOf(d, hn::Sub(part.Load(d, x + i), shift));
      part.Store(d, hn::MulSub(e, factor, uniform), dx + i);
    });
    dx[label] -= static_cast<T>(scale * (1 - in.label_smoothing));
  }
}

// Both, row by row, so that a row and its exponentials are formed once and are in cache.
template <class T, class Out>
void LossAndGradientRows(const CrossEntropyLoss<T, Out>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(a.columns);
  const auto uniform = hn::Set(d, static_cast<T>(a.scale * a.label_smoothing / static_cast<double>(columns)));
  for (int64_t row = begin; row < end; ++row) {
    T* x = a.logits + row * a.columns;
    Out* dx = a.d_logits + row * a.columns;
    const int32_t label = a.labels[row];
    if (label == a.ignore_index) {
      a.results[row] = {};
      std::fill_n(dx, columns, Out{});
      continue;
    }
    a.results[row] = RowLoss<T>(x, label, columns, a.label_smoothing, x);
    const T weight = static_cast<T>(a.scale / a.results[row].sum);
    const auto factor = hn::Set(d, weight);
    // Before it is rounded: p - 1 of a label that is almost certain is small.
    const T at_label = x[label] * weight - static_cast<T>(a.scale * a.label_smoothing / static_cast<double>(columns)) -
                       static_cast<T>(a.scale * (1 - a.label_smoothing));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      StoreAs(d, part, hn::MulSub(part.Load(d, x + i), factor, uniform), dx + i);
    });
    dx[label] = static_cast<Out>(at_label);
  }
}

void LossRows32(const CrossEntropyRows<float>& in, CrossEntropyRow* results, int64_t begin, int64_t end) {
  LossRows(in, results, begin, end);
}
void LossRows64(const CrossEntropyRows<double>& in, CrossEntropyRow* results, int64_t begin, int64_t end) {
  LossRows(in, results, begin, end);
}
void GradientRows32(const CrossEntropyRows<float>& in, const CrossEntropyRow* results, double scale, float* d_logits,
                    int64_t begin, int64_t end) {
  GradientRows(in, results, scale, d_logits, begin, end);
}
void GradientRows64(const CrossEntropyRows<double>& in, const CrossEntropyRow* results, double scale, double* d_logits,
                    int64_t begin, int64_t end) {
  GradientRows(in, results, scale, d_logits, begin, end);
}

void LossAndGradientRows32(const CrossEntropyLoss<float, float>& a, int64_t begin, int64_t end) {
  LossAndGradientRows(a, begin, end);
}
void LossAndGradientRows64(const CrossEntropyLoss<double, double>& a, int64_t begin, int64_t end) {
  LossAndGradientRows(a, begin, end);
}
void LossAndGradientRows16(const CrossEntropyLoss<float, bfloat16>& a, int64_t begin, int64_t end) {
  LossAndGradientRows(a, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(LossRows32);
HWY_EXPORT(LossRows64);
HWY_EXPORT(GradientRows32);
HWY_EXPORT(GradientRows64);
HWY_EXPORT(LossAndGradientRows32);
HWY_EXPORT(LossAndGradientRows64);
HWY_EXPORT(LossAndGradientRows16);

void cross_entropy_forward(Cpu, const CrossEntropyRows<float>& in, CrossEntropyRow* results) {
  parallel_for(in.rows, row_grain(in.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LossRows32)(in, results, begin, end);
  });
}
void cross_entropy_forward(Cpu, const CrossEntropyRows<double>& in, CrossEntropyRow* results) {
  parallel_for(in.rows, row_grain(in.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LossRows64)(in, results, begin, end);
  });
}
void cross_entropy_backward(Cpu, const CrossEntropyRows<float>& in, const CrossEntropyRow* results, double scale,
                            float* d_logits) {
  parallel_for(in.rows, row_grain(in.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GradientRows32)(in, results, scale, d_logits, begin, end);
  });
}
void cross_entropy_backward(Cpu, const CrossEntropyRows<double>& in, const CrossEntropyRow* results, double scale,
                            double* d_logits) {
  parallel_for(in.rows, row_grain(in.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GradientRows64)(in, results, scale, d_logits, begin, end);
  });
}

void cross_entropy_loss(Cpu, const CrossEntropyLoss<float, float>& a) {
  parallel_for(a.rows, row_grain(a.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LossAndGradientRows32)(a, begin, end);
  });
}
void cross_entropy_loss(Cpu, const CrossEntropyLoss<double, double>& a) {
  parallel_for(a.rows, row_grain(a.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LossAndGradientRows64)(a, begin, end);
  });
}
void cross_entropy_loss(Cpu, const CrossEntropyLoss<float, bfloat16>& a) {
  parallel_for(a.rows, row_grain(a.columns), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LossAndGradientRows16)(a, begin, end);
  });
}

}  // namespace attune
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/prediction_pairs.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/cross_entropy_pointers.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/math_inl.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/prediction_pairs.h"
#include "attune/kernels/row_grain.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

// log p[c] = (x[c] - shift) - log(sum), in two steps: shift + log(sum), rounded, would be far off where logits are
// large.
template <class D>
struct LogProbabilities {
  using T = hn::TFromD<D>;
  T shift, log_sum;
  hn::Vec<D> shifts, log_sums;

  HWY_INLINE LogProbabilities(D d, const CrossEntropyRow& row)
      : shift(static_cast<T>(row.shift)),
        log_sum(static_cast<T>(std::log(row.sum))),
        shifts(hn::Set(d, shift)),
        log_sums(hn::Set(d, log_sum)) {}
  HWY_INLINE hn::Vec<D> Of(hn::Vec<D> x) const { return hn::Sub(hn::Sub(x, shifts), log_sums); }
  T Of(T x) const { return (x - shift) - log_sum; }
};

// p, q, p (log p - log q) and q (log q - log p) of some columns; a term is 0 where its factor is.
template <class D>
struct PairTerms {
  hn::Vec<D> p, q, from_p, from_q;

  HWY_INLINE PairTerms(D d, hn::Vec<D> log_p, hn::Vec<D> log_q) : p(ExpOf(d, log_p)), q(ExpOf(d, log_q)) {
    const auto difference = hn::Sub(log_p, log_q), zero = hn::Zero(d);
    from_p = hn::IfThenElseZero(hn::Gt(p, zero), hn::Mul(p, difference));
    from_q = hn::IfThenElseZero(hn::Gt(q, zero), hn::Neg(hn::Mul(q, difference)));
  }
};

template <class T>
void DivergenceRows(const PairPointers<T>& pairs, int64_t begin, int64_t end) {
  const CrossEntropyPointers<T>& in = pairs.in;
  const hn::ScalableTag<T> d;
  for (int64_t row = begin; row < end; ++row) {
    if (in.labels[row] == in.ignore_index) continue;
    const T* x = in.logits + row * in.row_size;
    const T* y = x + pairs.pairs() * in.row_size;
    CrossEntropyRow &of_x = in.results[row], &of_y = in.results[row + pairs.pairs()];
    const LogProbabilities log_p(d, of_x), log_q(d, of_y);
    T totals[2];
    Sums(d, static_cast<size_t>(in.columns), totals, [&](size_t i, auto part, auto& sums) HWY_ATTR {
      const PairTerms terms(d, log_p.Of(part.Load(d, x + i)), log_q.Of(part.Load(d, y + i)));
      sums[0] = hn::Add(sums[0], part.OrElse(d, terms.from_p, T{0}));
      sums[1] = hn::Add(sums[1], part.OrElse(d, terms.from_q, T{0}));
    });
    of_x.divergence = totals[0];
    of_y.divergence = totals[1];
    const double both = pairs.weight * (of_x.divergence + of_y.divergence);
    of_x.loss += both;
    of_y.loss += both;
  }
}

// The gradient by the logit of the label. All of it is summed before it is rounded: for a label that is almost certain,
// p - 1 is small.
template <class T>
T GradientAtLabel(const PairPointers<T>& pairs, double scale, const CrossEntropyRow& own, double log_p, double log_q) {
  const double p = std::exp(log_p), q = std::exp(log_q);
  const double term = p > 0 ? p * (log_p - log_q) : 0;
  const double smoothing = pairs.in.label_smoothing;
  const double wanted = smoothing / static_cast<double>(pairs.in.columns) + 1 - smoothing;
  return static_cast<T>(scale * (p - wanted + 2 * pairs.weight * (term - p * own.divergence + p - q)));
}

// The gradient of KL(p || q) + KL(q || p) by the logits of p is p (log p - log q - KL(p || q)) + p - q.
template <class T, class Out>
void PairGradientRows(const PairPointers<T>& pairs, const CrossEntropyGradient<Out>& out, int64_t begin, int64_t end) {
  const CrossEntropyPointers<T>& in = pairs.in;
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(in.columns);
  const double weight = 2 * pairs.weight * out.scale;
  const auto uniform = hn::Set(d, static_cast<T>(out.scale * in.label_smoothing / static_cast<double>(columns)));
  const auto of_pair = hn::Set(d, static_cast<T>(weight));
  for (int64_t row = begin; row < end; ++row) {
    const T* x = in.logits + row * in.row_size;
    const T* y = x + pairs.pairs() * in.row_size;
    Out* dx = out.d_logits + row * in.row_size;
    Out* dy = dx + pairs.pairs() * in.row_size;
    const int32_t label = in.labels[row];
    if (label == in.ignore_index) {
      std::fill_n(dx, in.row_size, Out{});
      std::fill_n(dy, in.row_size, Out{});
      continue;
    }
    const CrossEntropyRow &of_x = in.results[row], &of_y = in.results[row + pairs.pairs()];
    const LogProbabilities log_p(d, of_x), log_q(d, of_y);
    const T at_x = GradientAtLabel(pairs, out.scale, of_x, log_p.Of(x[label]), log_q.Of(y[label]));
    const T at_y = GradientAtLabel(pairs, out.scale, of_y, log_q.Of(y[label]), log_p.Of(x[label]));
    // The factor of p in its own gradient: scale + weight (1 - KL(p || q)).
    const auto own_x = hn::Set(d, static_cast<T>(out.scale + weight * (1 - of_x.divergence)));
    const auto own_y = hn::Set(d, static_cast<T>(out.scale + weight * (1 - of_y.divergence)));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
      const PairTerms terms(d, log_p.Of(part.Load(d, x + i)), log_q.Of(part.Load(d, y + i)));
      const auto by_x = hn::MulAdd(of_pair, hn::Sub(terms.from_p, terms.q), hn::MulSub(own_x, terms.p, uniform));
      const auto by_y = hn::MulAdd(of_pair, hn::Sub(terms.from_q, terms.p), hn::MulSub(own_y, terms.q, uniform));
      StoreAs(d, part, by_x, dx + i);
      StoreAs(d, part, by_y, dy + i);
    });
    dx[label] = static_cast<Out>(at_x);
    dy[label] = static_cast<Out>(at_y);
    std::fill(dx + columns, dx + in.row_size, Out{});
    std::fill(dy + columns, dy + in.row_size, Out{});
  }
}

void DivergenceRows32(const PairPointers<float>& pairs, int64_t begin, int64_t end) {
  DivergenceRows(pairs, begin, end);
}
void DivergenceRows64(const PairPointers<double>& pairs, int64_t begin, int64_t end) {
  DivergenceRows(pairs, begin, end);
}
void PairGradientRows32(const PairPointers<float>& pairs, const CrossEntropyGradient<float>& out, int64_t begin,
                        int64_t end) {
  PairGradientRows(pairs, out, begin, end);
}
void PairGradientRows64(const PairPointers<double>& pairs, const CrossEntropyGradient<double>& out, int64_t begin,
                        int64_t end) {
  PairGradientRows(pairs, out, begin, end);
}
void PairGradientRows16(const PairPointers<float>& pairs, const CrossEntropyGradient<bfloat16>& out, int64_t begin,
                        int64_t end) {
  PairGradientRows(pairs, out, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(DivergenceRows32);
HWY_EXPORT(DivergenceRows64);
HWY_EXPORT(PairGradientRows32);
HWY_EXPORT(PairGradientRows64);
HWY_EXPORT(PairGradientRows16);

template <class T>
PairPointers<T> pair_pointers(const PredictionPairs& pairs) {
  return {.in = cross_entropy_pointers<T>(pairs.in, pairs.results), .weight = pairs.weight};
}

}  // namespace

void pair_divergences(Cpu, const PredictionPairs& pairs) {
  dispatch_floating("prediction_pairs", pairs.in.logits.dtype(), [&]<class T>(T) {
    const PairPointers<T> rows = pair_pointers<T>(pairs);
    parallel_for(rows.pairs(), row_grain(2 * rows.in.columns), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(DivergenceRows32), HWY_DYNAMIC_DISPATCH(DivergenceRows64))(rows, begin, end);
    });
  });
}

void pair_gradients(Cpu, const PredictionPairs& pairs, double scale, const Tensor& d_logits) {
  with_gradient_types("prediction_pairs", pairs.in.logits, d_logits, [&]<class T, class Out>(T, Out) {
    const PairPointers<T> rows = pair_pointers<T>(pairs);
    const CrossEntropyGradient<Out> out{.scale = scale, .d_logits = d_logits.data<Out>()};
    const auto run =
        for_types<T, Out>(HWY_DYNAMIC_DISPATCH(PairGradientRows32), HWY_DYNAMIC_DISPATCH(PairGradientRows64),
                          HWY_DYNAMIC_DISPATCH(PairGradientRows16));
    parallel_for(rows.pairs(), row_grain(2 * rows.in.columns),
                 [&](int64_t begin, int64_t end) { run(rows, out, begin, end); });
  });
}

}  // namespace attune
#endif

#include "attune/kernels/prediction_pairs.h"

#include <cmath>

#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

constexpr int kPairThreads = 1024;
constexpr int64_t kElementsOfThread = 8;

// A block for each pair.
template <class T>
struct PairInputs {
  const T* logits;
  const int32_t* labels;
  CrossEntropyRow* results;
  int64_t pairs, columns, row_size;
  int32_t ignore_index;
  double smoothing, weight;

  ATTUNE_DEVICE const T* row(int64_t r) const { return logits + r * row_size; }
};

// log p[c] = (x[c] - shift) - log(sum). One is subtracted after the other: shift + log(sum), rounded, is far off where
// logits are large.
template <class T>
struct LogProbabilities {
  T shift, log_sum;
  ATTUNE_DEVICE explicit LogProbabilities(const CrossEntropyRow& row)
      : shift(static_cast<T>(row.shift)), log_sum(static_cast<T>(std::log(row.sum))) {}
  ATTUNE_DEVICE T of(T x) const { return (x - shift) - log_sum; }
};

template <class T>
PairInputs<T> inputs_of(const PredictionPairs& pairs) {
  const CrossEntropyInputs& in = pairs.in;
  return {in.logits.data<T>(),   in.labels.data<int32_t>(), cross_entropy_rows(pairs.results),
          in.logits.size(0) / 2, in.class_count(),          in.logits.size(1),
          in.ignore_index,       in.label_smoothing,        pairs.weight};
}

cuda::LaunchShape shape_of(const PredictionPairs& pairs) {
  return {.blocks = pairs.in.logits.size(0) / 2,
          .threads = cuda::threads_for(pairs.in.logits.size(1), kPairThreads, kElementsOfThread)};
}

// p (log p - log q), which is 0 where p is.
template <class T>
ATTUNE_DEVICE T divergence_term(T p, T log_p, T log_q) {
  return p > 0 ? p * (log_p - log_q) : T{0};
}

template <class T>
struct Divergences {
  static constexpr int kThreads = kPairThreads;
  PairInputs<T> in;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t first = thread.block(), second = first + in.pairs;
    if (in.labels[first] == in.ignore_index) return;
    const T *const x = in.row(first), *const y = in.row(second);
    const LogProbabilities<T> of_p(in.results[first]), of_q(in.results[second]);
    T from_x = 0, from_y = 0;
    for (int64_t c = thread.index(); c < in.columns; c += thread.count()) {
      const T log_p = of_p.of(x[c]), log_q = of_q.of(y[c]);
      from_x += divergence_term(std::exp(log_p), log_p, log_q);
      from_y += divergence_term(std::exp(log_q), log_q, log_p);
    }
    const double of_x = thread.reduce(static_cast<double>(from_x), cuda::Sum{});
    const double of_y = thread.reduce(static_cast<double>(from_y), cuda::Sum{});
    if (thread.index() != 0) return;
    in.results[first].divergence = of_x;
    in.results[second].divergence = of_y;
    in.results[first].loss += in.weight * (of_x + of_y);
    in.results[second].loss += in.weight * (of_x + of_y);
  }
};

// The gradient of KL(p || q) + KL(q || p) by the logits of p is p (log p - log q - KL(p || q)) + p - q.
template <class T, class Out>
struct PairGradients {
  static constexpr int kThreads = kPairThreads;
  PairInputs<T> in;
  double scale;
  Out* d_logits;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t first = thread.block(), second = first + in.pairs;
    const int32_t label = in.labels[first];
    const bool ignored = label == in.ignore_index;
    const T *const x = in.row(first), *const y = in.row(second);
    Out *const dx = d_logits + first * in.row_size, *const dy = d_logits + second * in.row_size;
    const LogProbabilities<T> of_p(in.results[first]), of_q(in.results[second]);
    const T kl_x = static_cast<T>(in.results[first].divergence), kl_y = static_cast<T>(in.results[second].divergence);
    const T times = static_cast<T>(scale), weight = static_cast<T>(2 * in.weight);
    const T other = static_cast<T>(in.smoothing / static_cast<double>(in.columns));
    const T at_label = other + static_cast<T>(1 - in.smoothing);
    for (int64_t c = thread.index(); c < in.columns; c += thread.count()) {
      const T log_p = of_p.of(x[c]), log_q = of_q.of(y[c]), p = std::exp(log_p), q = std::exp(log_q);
      const T wanted = c == label ? at_label : other;
      const T by_x = divergence_term(p, log_p, log_q) - p * kl_x + p - q;
      const T by_y = divergence_term(q, log_q, log_p) - q * kl_y + q - p;
      dx[c] = static_cast<Out>(ignored ? T{0} : times * (p - wanted + weight * by_x));
      dy[c] = static_cast<Out>(ignored ? T{0} : times * (q - wanted + weight * by_y));
    }
    for (int64_t c = in.columns + thread.index(); c < in.row_size; c += thread.count()) dx[c] = dy[c] = Out{};
  }
};

}  // namespace

void pair_divergences(Cuda device, const PredictionPairs& pairs) {
  dispatch_floating("prediction_pairs", pairs.in.logits.dtype(), [&]<class T>(T) {
    cuda::launch(device, "prediction_pairs", shape_of(pairs), Divergences<T>{inputs_of<T>(pairs)});
  });
}

void pair_gradients(Cuda device, const PredictionPairs& pairs, double scale, const Tensor& d_logits) {
  with_gradient_types("prediction_pairs", pairs.in.logits, d_logits, [&]<class T, class Out>(T, Out) {
    cuda::launch(device, "prediction_pairs", shape_of(pairs),
                 PairGradients<T, Out>{inputs_of<T>(pairs), scale, d_logits.data<Out>()});
  });
}

}  // namespace attune

#include "attune/kernels/prediction_pairs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attune {
namespace {

// log softmax(x)[c] of a row.
template <class T>
double log_of_pair(const T* x, const CrossEntropyRow& row, int64_t c) {
  return x[c] - row.shift - std::log(row.sum);
}

// p (log p - log q), which is 0 where p is.
double divergence_term(double log_p, double log_q) {
  const double p = std::exp(log_p);
  return p > 0 ? p * (log_p - log_q) : 0;
}

// The gradient of KL(p || q) + KL(q || p) by the logits of p is p (log p - log q - KL(p || q)) + p - q.
template <class T, class Out>
void pair_gradient_rows(const PredictionPairs& pairs, double scale, const Tensor& d_logits) {
  const CrossEntropyInputs& in = pairs.in;
  CrossEntropyRow* const results = cross_entropy_rows(pairs.results);
  const int64_t columns = in.class_count(), row_size = in.logits.size(1), half = in.logits.size(0) / 2;
  const double uniform = in.label_smoothing / static_cast<double>(columns);
  for (int64_t r = 0; r < half; ++r) {
    const int32_t label = in.labels.data<int32_t>()[r];
    const T* const x = in.logits.data<T>() + r * row_size;
    const T* const y = x + half * row_size;
    Out* const dx = d_logits.data<Out>() + r * row_size;
    Out* const dy = dx + half * row_size;
    const CrossEntropyRow &of_x = results[r], &of_y = results[r + half];
    for (int64_t c = 0; c < columns; ++c) {
      if (label == in.ignore_index) {
        dx[c] = dy[c] = Out{};
        continue;
      }
      const double wanted = uniform + (c == label ? 1 - in.label_smoothing : 0);
      const double log_p = log_of_pair(x, of_x, c), log_q = log_of_pair(y, of_y, c);
      const double p = std::exp(log_p), q = std::exp(log_q);
      const double by_x = divergence_term(log_p, log_q) - p * of_x.divergence + p - q;
      const double by_y = divergence_term(log_q, log_p) - q * of_y.divergence + q - p;
      dx[c] = static_cast<Out>(static_cast<T>(scale * (p - wanted + 2 * pairs.weight * by_x)));
      dy[c] = static_cast<Out>(static_cast<T>(scale * (q - wanted + 2 * pairs.weight * by_y)));
    }
    std::fill(dx + columns, dx + row_size, Out{});
    std::fill(dy + columns, dy + row_size, Out{});
  }
}

}  // namespace

void pair_divergences(Plain, const PredictionPairs& pairs) {
  const CrossEntropyInputs& in = pairs.in;
  CrossEntropyRow* const results = cross_entropy_rows(pairs.results);
  const int64_t columns = in.class_count(), row_size = in.logits.size(1), half = in.logits.size(0) / 2;
  dispatch_floating("prediction_pairs", in.logits.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < half; ++r) {
      if (in.labels.data<int32_t>()[r] == in.ignore_index) continue;
      const T* const x = in.logits.data<T>() + r * row_size;
      const T* const y = x + half * row_size;
      CrossEntropyRow &of_x = results[r], &of_y = results[r + half];
      for (int64_t c = 0; c < columns; ++c) {
        const double log_p = log_of_pair(x, of_x, c), log_q = log_of_pair(y, of_y, c);
        of_x.divergence += divergence_term(log_p, log_q);
        of_y.divergence += divergence_term(log_q, log_p);
      }
      const double both = pairs.weight * (of_x.divergence + of_y.divergence);
      of_x.loss += both;
      of_y.loss += both;
    }
  });
}

void pair_gradients(Plain, const PredictionPairs& pairs, double scale, const Tensor& d_logits) {
  with_gradient_types("prediction_pairs", pairs.in.logits, d_logits,
                      [&]<class T, class Out>(T, Out) { pair_gradient_rows<T, Out>(pairs, scale, d_logits); });
}

}  // namespace attune

#include "attune/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attune {
namespace {

// -log softmax(x)[label], with the largest logit subtracted first; mixed with the mean over all classes.
template <class T>
CrossEntropyRow row_loss(const T* x, int32_t label, int64_t columns, double smoothing) {
  int64_t first_largest = 0;
  for (int64_t c = 1; c < columns; ++c)
    if (x[c] > x[first_largest]) first_largest = c;
  CrossEntropyRow row;
  row.shift = x[first_largest] == -std::numeric_limits<T>::infinity() ? 0 : static_cast<double>(x[first_largest]);
  row.correct = first_largest == label && x[label] == row.shift ? 1 : 0;
  double total = 0;
  for (int64_t c = 0; c < columns; ++c) {
    row.sum += std::exp(x[c] - row.shift);
    total += x[c];
  }
  const double log_sum = row.shift + std::log(row.sum);
  row.negative_log_likelihood = log_sum - x[label];
  row.loss = row.negative_log_likelihood;
  if (smoothing > 0)
    row.loss =
        (1 - smoothing) * row.negative_log_likelihood + smoothing * (log_sum - total / static_cast<double>(columns));
  return row;
}

// scale * (p - epsilon / columns - (1 - epsilon) [c = label])
template <class T, class Out>
void gradients(const CrossEntropyInputs& in, const Tensor& results, double scale, const Tensor& d_logits) {
  const int64_t columns = in.class_count(), row_size = in.logits.size(1);
  for (int64_t r = 0; r < in.logits.size(0); ++r) {
    const T* const x = in.logits.data<T>() + r * row_size;
    Out* const dx = d_logits.data<Out>() + r * row_size;
    const int32_t label = in.labels.data<int32_t>()[r];
    const CrossEntropyRow& row = cross_entropy_rows(results)[r];
    for (int64_t c = 0; c < columns; ++c) {
      const double wanted =
          in.label_smoothing / static_cast<double>(columns) + (c == label ? 1 - in.label_smoothing : 0);
      const double slope = std::exp(x[c] - row.shift) / row.sum - wanted;
      dx[c] = static_cast<Out>(label == in.ignore_index ? 0 : scale * slope);
    }
    std::fill(dx + columns, dx + row_size, Out{});
  }
}

}  // namespace

void cross_entropy_forward(Plain, const CrossEntropyInputs& in, const Tensor& results) {
  const int64_t columns = in.class_count(), row_size = in.logits.size(1);
  dispatch_floating("cross_entropy", in.logits.dtype(), [&]<class T>(T) {
    for (int64_t r = 0; r < in.logits.size(0); ++r) {
      const int32_t label = in.labels.data<int32_t>()[r];
      cross_entropy_rows(results)[r] =
          label == in.ignore_index ? CrossEntropyRow{}
                                   : row_loss(in.logits.data<T>() + r * row_size, label, columns, in.label_smoothing);
    }
  });
}

void cross_entropy_backward(Plain, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits) {
  with_gradient_types("cross_entropy", in.logits, d_logits,
                      [&]<class T, class Out>(T, Out) { gradients<T, Out>(in, results, scale, d_logits); });
}

void cross_entropy_loss(Plain, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits) {
  cross_entropy_forward(Plain{}, in, results);
  cross_entropy_backward(Plain{}, in, results, scale, d_logits);
}

void cross_entropy_totals(Plain, const Tensor& results, const Tensor& totals) {
  for (int64_t j = 0; j < kCrossEntropyNumbers; ++j) {
    double sum = 0;
    for (int64_t r = 0; r < results.size(0); ++r) sum += results.data<double>()[r * kCrossEntropyNumbers + j];
    totals.data<double>()[j] = sum;
  }
}

}  // namespace attune

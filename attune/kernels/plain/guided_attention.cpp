#include "attune/kernels/attention/guided_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attune/kernels/plain/head_of.h"

namespace attune {
namespace {

// A query with links, and the keys of its sequence.
struct Row {
  int64_t row, first_key, keys;
  std::span<const int32_t> links;
};

template <class F>
void for_each_row(const GuidedAttentionInputs& in, F&& f) {
  for (int64_t s = 0; s < in.sequences(); ++s) {
    const auto i = static_cast<size_t>(s);
    for (int64_t row = in.query_offsets[i]; row < in.query_offsets[i + 1]; ++row) {
      const int32_t begin = in.link_offsets[static_cast<size_t>(row)];
      const int32_t end = in.link_offsets[static_cast<size_t>(row) + 1];
      if (begin == end) continue;
      f(Row{.row = row,
            .first_key = in.key_offsets[i],
            .keys = in.key_offsets[i + 1] - in.key_offsets[i],
            .links = in.link_keys.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))});
    }
  }
}

int64_t key_head(const GuidedAttentionInputs& in) {
  return in.head / (in.q.heads / in.k.heads);
}

struct Score {
  double value, slope;  // the slope of the soft cap
};

template <class T>
Score score(const GuidedAttentionInputs& in, int64_t row, int64_t key_row) {
  const T* q = plain::head_of<T>(in.q, row, in.head);
  const T* k = plain::head_of<T>(in.k, key_row, key_head(in));
  double sum = 0;
  for (int64_t c = 0; c < in.q.d; ++c) sum += static_cast<double>(q[c]) * static_cast<double>(k[c]);
  sum *= in.scale;
  if (in.soft_cap <= 0) return {sum, 1};
  const double t = std::tanh(sum / in.soft_cap);
  return {in.soft_cap * t, 1 - t * t};
}

template <class T>
double forward(const GuidedAttentionInputs& in, const Tensor& log_sum_exp) {
  std::fill_n(log_sum_exp.data<double>(), log_sum_exp.numel(), 0.0);
  double sum = 0;
  for_each_row(in, [&](const Row& row) {
    const auto score_of = [&](int64_t key) { return score<T>(in, row.row, row.first_key + key).value; };
    double largest = -std::numeric_limits<double>::infinity(), total = 0, loss = 0;
    for (int64_t key = 0; key < row.keys; ++key) largest = std::max(largest, score_of(key));
    for (int64_t key = 0; key < row.keys; ++key) total += std::exp(score_of(key) - largest);
    const double log_sum = largest + std::log(total);
    for (const int32_t key : row.links) loss += log_sum - score_of(key);
    log_sum_exp.data<double>()[row.row] = log_sum;
    sum += loss / static_cast<double>(row.links.size());
  });
  return sum;
}

template <class T>
void backward(const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor, const HeadColumns& dq,
              const HeadColumns& dk) {
  for_each_row(in, [&](const Row& row) {
    for (int64_t key = 0; key < row.keys; ++key) {
      const int64_t key_row = row.first_key + key;
      const auto [value, slope] = score<T>(in, row.row, key_row);
      const double attention = std::exp(value - log_sum_exp.data<double>()[row.row]);
      const bool is_linked = std::ranges::find(row.links, key) != row.links.end();
      const double alignment = is_linked ? 1.0 / static_cast<double>(row.links.size()) : 0;
      const double d_product = factor * (attention - alignment) * slope * in.scale;
      const T* q = plain::head_of<T>(in.q, row.row, in.head);
      const T* k = plain::head_of<T>(in.k, key_row, key_head(in));
      T* to_q = plain::head_of<T>(dq, row.row, in.head);
      T* to_k = plain::head_of<T>(dk, key_row, key_head(in));
      for (int64_t c = 0; c < in.q.d; ++c) {
        to_q[c] += static_cast<T>(d_product * static_cast<double>(k[c]));
        to_k[c] += static_cast<T>(d_product * static_cast<double>(q[c]));
      }
    }
  });
}

}  // namespace

void guided_attention_forward(Plain, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, const Tensor& sum) {
  *sum.data<double>() = dispatch_floating("guided_attention_loss", in.q.x.dtype(),
                                          [&]<class T>(T) { return forward<T>(in, log_sum_exp); });
}

void guided_attention_backward(Plain, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk) {
  dispatch_floating("guided_attention_loss", in.q.x.dtype(),
                    [&]<class T>(T) { backward<T>(in, log_sum_exp, factor, dq, dk); });
}

}  // namespace attune

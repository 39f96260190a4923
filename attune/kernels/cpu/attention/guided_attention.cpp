// One head of one layer, and only the queries that have links: plain loops.

#include "attune/kernels/attention/guided_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "attune/base/parallel.h"

namespace attune {
namespace {

constexpr int64_t kSequencesOfAPiece = 4;  // sequences of a piece: some ten microseconds

// Head h of q, its head of k, and the links, as pointers of one type.
template <class T>
struct Pointers {
  const GuidedAttentionInputs& in;
  const T* q;  // row r at q + r * q_row
  const T* k;
  int64_t q_row, k_row;

  explicit Pointers(const GuidedAttentionInputs& inputs)
      : in(inputs),
        q(inputs.q.x.data<T>() + q_column(inputs)),
        k(inputs.k.x.data<T>() + k_column(inputs)),
        q_row(inputs.q.x.size(1)),
        k_row(inputs.k.x.size(1)) {}

  static int64_t q_column(const GuidedAttentionInputs& in) { return in.q.column + in.head * in.q.d; }
  static int64_t k_column(const GuidedAttentionInputs& in) {
    return in.k.column + in.head / (in.q.heads / in.k.heads) * in.k.d;
  }
};

// Writes the scores of a query for the keys of its sequence and, for a soft cap, its slopes.
template <class T>
void write_scores(const Pointers<T>& p, int64_t row, int64_t first_key, std::span<double> scores,
                  std::span<double> slopes) {
  const T* const q = p.q + row * p.q_row;
  for (size_t j = 0; j < scores.size(); ++j) {
    const T* const k = p.k + (first_key + static_cast<int64_t>(j)) * p.k_row;
    T sum = 0;
    for (int64_t c = 0; c < p.in.q.d; ++c) sum += q[c] * k[c];
    const double product = static_cast<double>(sum) * p.in.scale;
    const double t = p.in.soft_cap > 0 ? std::tanh(product / p.in.soft_cap) : 0;
    scores[j] = p.in.soft_cap > 0 ? p.in.soft_cap * t : product;
    slopes[j] = 1 - t * t;
  }
}

// Calls f(row, first key, scores, slopes, links) for the queries with links of some sequences. A sequence is one
// thread's work, so that its keys get their gradients in the order of its queries.
template <class T, class F>
void for_each_linked_row(const Pointers<T>& p, F&& f) {
  const GuidedAttentionInputs& in = p.in;
  parallel_for(in.sequences(), kSequencesOfAPiece, [&](int64_t begin, int64_t end) {
    std::vector<double> scores, slopes;
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
      const int64_t first_key = in.key_offsets[s];
      scores.resize(static_cast<size_t>(in.key_offsets[s + 1] - first_key));
      slopes.resize(scores.size());
      for (auto row = static_cast<size_t>(in.query_offsets[s]); row < static_cast<size_t>(in.query_offsets[s + 1]);
           ++row) {
        const auto from = static_cast<size_t>(in.link_offsets[row]), to = static_cast<size_t>(in.link_offsets[row + 1]);
        if (from == to) continue;
        write_scores<T>(p, static_cast<int64_t>(row), first_key, scores, slopes);
        f(static_cast<int64_t>(row), first_key, scores, slopes, in.link_keys.subspan(from, to - from));
      }
    }
  });
}

double log_sum_of(const std::vector<double>& scores) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (const double s : scores)
    if (!(s <= largest)) largest = s;  // NaN is the largest of all
  for (const double s : scores) total += std::exp(s - largest);
  return largest + std::log(total);
}

template <class T>
double forward(const GuidedAttentionInputs& in, std::span<double> log_sum_exp) {
  std::vector<double> losses(log_sum_exp.size());  // of each row, so that the sum has one order
  std::ranges::fill(log_sum_exp, 0.0);
  for_each_linked_row(Pointers<T>(in), [&](int64_t row, int64_t, const std::vector<double>& scores,
                                           const std::vector<double>&, std::span<const int32_t> links) {
    const double log_sum = log_sum_of(scores);
    double loss = 0;
    for (const int32_t key : links) loss += log_sum - scores[static_cast<size_t>(key)];
    log_sum_exp[static_cast<size_t>(row)] = log_sum;
    losses[static_cast<size_t>(row)] = loss / static_cast<double>(links.size());
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

template <class T>
void backward(const GuidedAttentionInputs& in, const double* log_sum_exp, double factor, T* dq, T* dk) {
  const Pointers<T> p(in);
  for_each_linked_row(p, [&](int64_t row, int64_t first_key, std::vector<double>& scores,
                             const std::vector<double>& slopes, std::span<const int32_t> links) {
    for (double& s : scores) s = std::exp(s - log_sum_exp[row]);  // the attention weights
    for (const int32_t key : links) scores[static_cast<size_t>(key)] -= 1.0 / static_cast<double>(links.size());
    const T* const q = p.q + row * p.q_row;
    T* const to_q = dq + row * p.q_row;
    for (size_t j = 0; j < scores.size(); ++j) {
      const auto d_product = static_cast<T>(factor * scores[j] * slopes[j] * in.scale);
      const int64_t key_row = (first_key + static_cast<int64_t>(j)) * p.k_row;
      const T* const k = p.k + key_row;
      T* const to_k = dk + key_row;
      for (int64_t c = 0; c < in.q.d; ++c) {
        to_q[c] += d_product * k[c];
        to_k[c] += d_product * q[c];
      }
    }
  });
}

}  // namespace

void guided_attention_forward(Cpu, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, const Tensor& sum) {
  *sum.data<double>() = dispatch_floating("guided_attention_loss", in.q.x.dtype(), [&]<class T>(T) {
    return forward<T>(in, {log_sum_exp.data<double>(), static_cast<size_t>(log_sum_exp.numel())});
  });
}

void guided_attention_backward(Cpu, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk) {
  dispatch_floating("guided_attention_loss", in.q.x.dtype(), [&]<class T>(T) {
    backward<T>(in, log_sum_exp.data<double>(), factor, dq.x.data<T>() + Pointers<T>::q_column(in),
                dk.x.data<T>() + Pointers<T>::k_column(in));
  });
}

}  // namespace attune

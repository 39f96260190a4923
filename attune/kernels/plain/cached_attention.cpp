#include "attune/kernels/attention/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

// One query head of one row; positions are those of its sequence.
template <class T>
class CachedQuery {
 public:
  CachedQuery(const CachedAttention& arguments, int64_t row, int64_t head)
      : a_(arguments),
        head_(head),
        kv_head_(head / (arguments.q.size(1) / arguments.kv_heads)),
        q_(arguments.q.data<T>() + (row * arguments.q.size(1) + head) * arguments.q.size(2)),
        out_(arguments.out.data<T>() + (row * arguments.q.size(1) + head) * arguments.out.size(2)),
        slots_(arguments.slots.subspan(static_cast<size_t>(arguments.begin[static_cast<size_t>(row)]))),
        length_(arguments.end[static_cast<size_t>(row)] - arguments.begin[static_cast<size_t>(row)]) {}

  void attend(T* kept_weights) const {
    std::vector<double> weights(static_cast<size_t>(length_));  // by position; 0 where the pattern forbids it
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t j = 0; j < length_; ++j)
      if (sees(j)) largest = std::max(largest, score(j));
    if (std::isinf(largest) && largest < 0) largest = 0;  // then all weights are 0, not NaN
    for (int64_t j = 0; j < length_; ++j)
      if (sees(j)) total += weights[static_cast<size_t>(j)] = std::exp(score(j) - largest);
    if (total == 0) total = 1;
    for (int64_t c = 0; c < a_.out.size(2); ++c) {
      double sum = 0;
      for (int64_t j = 0; j < length_; ++j)
        if (sees(j)) sum += weights[static_cast<size_t>(j)] / total * value(j, c);
      out_[c] = static_cast<T>(sum);
    }
    for (int64_t j = 0; kept_weights != nullptr && j < length_; ++j)
      kept_weights[j] = static_cast<T>(weights[static_cast<size_t>(j)] / total);
  }

 private:
  bool sees(int64_t j) const { return allows(a_.pattern, length_ - 1, j); }

  double score(int64_t j) const {
    const int64_t d_k = a_.q.size(2);
    const T* key = a_.keys.row<T>(slots_[static_cast<size_t>(j)]) + kv_head_ * d_k;
    double sum = 0;
    for (int64_t c = 0; c < d_k; ++c)
      sum += static_cast<double>(q_[c]) * (static_cast<double>(key[c]) + relative(a_.relative_keys, j, c));
    const double slope = a_.slopes.empty() ? 0 : a_.slopes[static_cast<size_t>(head_)];
    const double product = sum * a_.scale;
    const double capped = a_.soft_cap > 0 ? a_.soft_cap * std::tanh(product / a_.soft_cap) : product;
    return capped - slope * static_cast<double>(length_ - 1 - j) + bias(j);
  }

  double bias(int64_t j) const {
    if (!a_.distance_bias.defined()) return 0;
    const int64_t reach = a_.distance_bias.size(0) / 2, row = reach - std::min(length_ - 1 - j, reach);
    return static_cast<double>(a_.distance_bias.data<T>()[row * a_.q.size(1) + head_]);
  }

  double value(int64_t j, int64_t c) const {
    const T* row = a_.values.row<T>(slots_[static_cast<size_t>(j)]) + kv_head_ * (a_.values.width() / a_.kv_heads);
    return static_cast<double>(row[c]) + relative(a_.relative_values, j, c);
  }

  double relative(const Tensor& table, int64_t j, int64_t c) const {
    if (!table.defined()) return 0;
    const int64_t distance = std::min(length_ - 1 - j, a_.clip);
    return static_cast<double>(table.data<T>()[(a_.clip - distance) * table.size(1) + c]);
  }

  const CachedAttention& a_;
  int64_t head_, kv_head_;
  const T* q_;
  T* out_;
  std::span<const int32_t> slots_;
  int64_t length_;
};

}  // namespace

void cached_attention_forward(Plain, const CachedAttention& a) {
  dispatch_floating("cached_attention", a.q.dtype(), [&]<class T>(T) {
    T* weights = data_or_null<T>(a.weights);
    for (int64_t row = 0; row < a.q.size(0); ++row) {
      for (int64_t head = 0; head < a.q.size(1); ++head)
        CachedQuery<T>(a, row, head)
            .attend(weights ? weights + (row * a.q.size(1) + head) * a.weights.size(2) : nullptr);
    }
  });
}

}  // namespace attune

#include "attune/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "attune/kernels/attention/attention_plan.h"
#include "attune/kernels/plain/head_of.h"

namespace attune {
namespace {

// One query of one head, and the keys of its sequence.
struct Query {
  int64_t sequence, head, kv_head;
  int64_t index, row, out_row;  // within the sequence, of q, and row * heads + head
  int64_t position;             // among the keys
  int64_t first_key, keys;      // rows of k and v
};

template <class F>
void for_each_query(const AttentionInputs& in, F&& f) {
  for (int64_t s = 0; s < in.sequences(); ++s) {
    const auto i = static_cast<size_t>(s);
    const int64_t queries = in.query_offsets[i + 1] - in.query_offsets[i];
    const int64_t keys = in.key_offsets[i + 1] - in.key_offsets[i];
    for (int64_t query = 0; query < queries; ++query) {
      for (int64_t head = 0; head < in.q.heads; ++head) {
        const int64_t row = in.query_offsets[i] + query;
        f(Query{.sequence = s,
                .head = head,
                .kv_head = head / (in.q.heads / in.k.heads),
                .index = query,
                .row = row,
                .out_row = row * in.q.heads + head,
                .position = query + keys - queries,
                .first_key = in.key_offsets[i],
                .keys = keys});
      }
    }
  }
}

bool sees(const AttentionInputs& in, const Query& query, int64_t key) {
  if (in.causal && key > query.position) return false;
  if (!allows(in.pattern, query.position, key)) return false;
  if (!in.mask.defined()) return true;
  const int64_t sequence = in.mask.size(0) == 1 ? 0 : query.sequence;
  return in.mask.data<uint8_t>()[(sequence * in.mask.size(1) + query.index) * in.mask.size(2) + key] != 0;
}

// Returns the row of a table of relative positions for this query and key; null without a table.
template <class T>
T* relative_row(const AttentionInputs& in, const Tensor& table, const Query& query, int64_t key) {
  if (!table.defined()) return nullptr;
  const int64_t row = std::clamp(key - query.position, -in.clip, in.clip) + in.clip;
  return table.data<T>() + row * table.size(1);
}

// Which element of the distance bias is added to the score.
int64_t bias_index(const AttentionInputs& in, const Query& query, int64_t key) {
  const int64_t reach = in.distance_bias.size(0) / 2;
  return (std::clamp(key - query.position, -reach, reach) + reach) * in.q.heads + query.head;
}

// a . (b + c), where c may be null.
template <class T>
double dot(const T* a, const T* b, const T* c, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(a[i]) * (static_cast<double>(b[i]) + (c != nullptr ? static_cast<double>(c[i]) : 0));
  return sum;
}

template <class T>
double scaled_product(const AttentionInputs& in, const Query& query, int64_t key) {
  const T* q = plain::head_of<T>(in.q, query.row, query.head);
  const T* k = plain::head_of<T>(in.k, query.first_key + key, query.kv_head);
  return dot(q, k, relative_row<T>(in, in.relative_keys, query, key), in.q.d) * in.scale;
}

double capped(const AttentionInputs& in, double x) {
  return in.soft_cap > 0 ? in.soft_cap * std::tanh(x / in.soft_cap) : x;
}
double cap_slope(const AttentionInputs& in, double x) {
  if (in.soft_cap <= 0) return 1;
  const double t = std::tanh(x / in.soft_cap);
  return 1 - t * t;
}

template <class T>
double score(const AttentionInputs& in, const Query& query, int64_t key) {
  double product = capped(in, scaled_product<T>(in, query, key));
  if (in.distance_bias.defined())
    product += static_cast<double>(in.distance_bias.data<T>()[bias_index(in, query, key)]);
  if (in.slopes.empty()) return product;
  return product - in.slopes[static_cast<size_t>(query.head)] * static_cast<double>(std::abs(key - query.position));
}

// Returns the factor that dropout applies to the weight of a key.
double dropout_factor(const AttentionInputs& in, const Query& query, int64_t key) {
  if (!in.dropout.active()) return 1;
  const int64_t column = dropout_column(in.pattern, query.position, key);
  return keep_mask(in.dropout, query.out_row, column) ? in.dropout.scale() : 0;
}

// log(sum of exp(score)) over the keys that the query sees; -infinity where it sees none.
template <class T>
double log_sum(const AttentionInputs& in, const Query& query) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t key = 0; key < query.keys; ++key) {
    if (!sees(in, query, key)) continue;
    const double s = score<T>(in, query, key);
    if (!(s <= largest)) largest = s;  // NaN is the largest of all
  }
  if (std::isinf(largest) && largest < 0) return largest;
  double total = 0;
  for (int64_t key = 0; key < query.keys; ++key)
    if (sees(in, query, key)) total += std::exp(score<T>(in, query, key) - largest);
  return largest + std::log(total);
}

template <class T>
void forward(const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  for_each_query(in, [&](const Query& query) {
    const double sum = log_sum<T>(in, query);
    const bool nothing = std::isinf(sum) && sum < 0;
    std::vector<double> values(static_cast<size_t>(in.v.d));
    for (int64_t key = 0; key < query.keys && !nothing; ++key) {
      if (!sees(in, query, key)) continue;
      const double weight = std::exp(score<T>(in, query, key) - sum) * dropout_factor(in, query, key);
      const T* v = plain::head_of<T>(in.v, query.first_key + key, query.kv_head);
      const T* relative = relative_row<T>(in, in.relative_values, query, key);
      for (size_t c = 0; c < values.size(); ++c)
        values[c] +=
            weight * (static_cast<double>(v[c]) + (relative != nullptr ? static_cast<double>(relative[c]) : 0));
    }
    for (size_t c = 0; c < values.size(); ++c)
      out.data<T>()[query.out_row * in.v.d + static_cast<int64_t>(c)] = static_cast<T>(values[c]);
    log_sum_exp.data<T>()[query.out_row] = static_cast<T>(nothing ? -sum : sum);
  });
}

// Sums a gradient in float64. Its rows are those of a table, or the heads of rows (row * heads + head).
class Sum {
 public:
  Sum(int64_t rows, int64_t width) : width_(width), sums_(static_cast<size_t>(rows * width)) {}

  template <class T>
  void add(int64_t row, double factor, const T* x) {
    for (int64_t c = 0; c < width_; ++c)
      sums_[static_cast<size_t>(row * width_ + c)] += factor * static_cast<double>(x[c]);
  }
  template <class T>
  void write(int64_t row, T* to) const {
    for (int64_t c = 0; c < width_; ++c) to[c] = static_cast<T>(sums_[static_cast<size_t>(row * width_ + c)]);
  }
  template <class T>
  void write(const HeadColumns& to) const {  // rows are heads
    for (int64_t row = 0; row < to.x.size(0); ++row)
      for (int64_t head = 0; head < to.heads; ++head) write(row * to.heads + head, plain::head_of<T>(to, row, head));
  }
  template <class T>
  void write(const Tensor& table) const {
    for (int64_t row = 0; table.defined() && row < table.size(0); ++row) write(row, table.data<T>() + row * width_);
  }

 private:
  int64_t width_;
  std::vector<double> sums_;
};

template <class T>
void backward(const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp, const Tensor& d_out,
              const AttentionGradients& gradients) {
  Sum dq(in.q.x.size(0) * in.q.heads, in.q.d), dk(in.k.x.size(0) * in.k.heads, in.k.d),
      dv(in.v.x.size(0) * in.v.heads, in.v.d);
  Sum d_relative_keys(2 * in.clip + 1, in.k.d), d_relative_values(2 * in.clip + 1, in.v.d);
  std::vector<double> d_bias(static_cast<size_t>(in.distance_bias.defined() ? in.distance_bias.numel() : 0));
  for_each_query(in, [&](const Query& query) {
    const T* dy = d_out.data<T>() + query.out_row * in.v.d;
    const T* q = plain::head_of<T>(in.q, query.row, query.head);
    const double dy_dot_y = dot<T>(dy, out.data<T>() + query.out_row * in.v.d, nullptr, in.v.d);
    for (int64_t key = 0; key < query.keys; ++key) {
      if (!sees(in, query, key)) continue;
      const int64_t row = query.first_key + key, head_row = row * in.k.heads + query.kv_head;
      const int64_t table_row = std::clamp(key - query.position, -in.clip, in.clip) + in.clip;
      const T* k = plain::head_of<T>(in.k, row, query.kv_head);
      const T* v = plain::head_of<T>(in.v, row, query.kv_head);
      const T* relative_key = relative_row<T>(in, in.relative_keys, query, key);
      const T* relative_value = relative_row<T>(in, in.relative_values, query, key);
      const double weight =
          std::exp(score<T>(in, query, key) - static_cast<double>(log_sum_exp.data<T>()[query.out_row]));
      const double factor = dropout_factor(in, query, key);
      const double d_weight = dot(dy, v, relative_value, in.v.d) * factor;
      const double d_score = weight * (d_weight - dy_dot_y);
      const double slope = cap_slope(in, scaled_product<T>(in, query, key));
      const double d_product = d_score * slope * in.scale;  // the gradient of q . (k + relative key)
      if (!d_bias.empty()) d_bias[static_cast<size_t>(bias_index(in, query, key))] += d_score;
      dq.add(query.out_row, d_product, k);
      dk.add(head_row, d_product, q);
      dv.add(head_row, weight * factor, dy);
      if (relative_key != nullptr) {
        dq.add(query.out_row, d_product, relative_key);
        d_relative_keys.add(table_row, d_product, q);
      }
      if (relative_value != nullptr) d_relative_values.add(table_row, weight * factor, dy);
    }
  });
  dq.write<T>(gradients.dq);
  dk.write<T>(gradients.dk);
  dv.write<T>(gradients.dv);
  d_relative_keys.write<T>(gradients.d_relative_keys);
  d_relative_values.write<T>(gradients.d_relative_values);
  for (size_t i = 0; i < d_bias.size(); ++i) gradients.d_distance_bias.data<T>()[i] = static_cast<T>(d_bias[i]);
}

}  // namespace

void attention_forward(Plain, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) { forward<T>(in, out, log_sum_exp); });
}

void attention_backward(Plain, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) { backward<T>(in, out, log_sum_exp, d_out, gradients); });
}

void attention_weights(Plain, const AttentionInputs& in, const Tensor& log_sum_exp, const Tensor& weights) {
  dispatch_floating("attention", weights.dtype(), [&]<class T>(T) {
    for_each_query(in, [&](const Query& query) {
      T* to = weights.data<T>() +
              ((query.sequence * in.q.heads + query.head) * weights.size(2) + query.index) * weights.size(3);
      const auto sum = static_cast<double>(log_sum_exp.data<T>()[query.out_row]);
      for (int64_t key = 0; key < query.keys; ++key)
        if (sees(in, query, key)) to[key] = static_cast<T>(std::exp(score<T>(in, query, key) - sum));
    });
  });
}

}  // namespace attune

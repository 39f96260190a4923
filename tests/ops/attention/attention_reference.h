#pragma once
// Attention as a plain loop over pairs of queries and keys, and random problems to compare it on.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "attune/kernels/attention/attention_plan.h"
#include "attune/ops/attention/attention.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {

struct Problem {
  Tensor q, k, v;
  AttentionOptions options;
};

struct Sizes {
  std::vector<int32_t> queries, keys;
  int64_t heads = 2, kv_heads = 2, d_k = 5, d_v = 3;
};

inline Problem random_problem(const Sizes& s, DType dtype, uint64_t seed = 1) {
  Problem p;
  p.options.query_sequences = Sequences::from_lengths(s.queries);
  p.options.key_sequences = Sequences::from_lengths(s.keys);
  p.q = normal({p.options.query_sequences.total(), s.heads, s.d_k}, {.dtype = dtype, .seed = seed});
  p.k = normal({p.options.key_sequences.total(), s.kv_heads, s.d_k}, {.dtype = dtype, .seed = seed + 1});
  p.v = normal({p.options.key_sequences.total(), s.kv_heads, s.d_v}, {.dtype = dtype, .seed = seed + 2});
  return p;
}

// The formula, one number at a time: what every fast kernel has to agree with.
inline Tensor reference(const Problem& p, Tensor* weights = nullptr) {
  const AttentionOptions& o = p.options;
  const Tensor q = p.q.to(DType::f64), k = p.k.to(DType::f64), v = p.v.to(DType::f64);
  const Tensor a = o.relative_keys.defined() ? o.relative_keys.to(DType::f64) : Tensor{};
  const Tensor b = o.relative_values.defined() ? o.relative_values.to(DType::f64) : Tensor{};
  const Tensor bias = o.distance_bias.defined() ? o.distance_bias.to(DType::f64) : Tensor{};
  const int64_t reach = bias.defined() ? bias.size(0) / 2 : 0;
  const int64_t heads = q.size(1), group = heads / k.size(1), d_k = q.size(2), d_v = v.size(2);
  const double scale = o.scale > 0 ? o.scale : 1 / std::sqrt(static_cast<double>(d_k));
  const int64_t clip = (a.defined() ? a.size(0) : b.defined() ? b.size(0) : 1) / 2;
  Tensor out = Tensor::zeros({q.size(0), heads, d_v}, {.dtype = DType::f64});
  const int64_t most_q = o.query_sequences.max_length(), most_k = o.key_sequences.max_length();
  if (weights) *weights = Tensor::zeros({o.query_sequences.count(), heads, most_q, most_k}, {.dtype = DType::f64});
  for (int64_t s = 0; s < o.query_sequences.count(); ++s) {
    const int64_t queries = o.query_sequences.length(s), keys = o.key_sequences.length(s);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t q_row = (o.query_sequences.begin(s) + i) * heads + h;
        const int64_t position = i + keys - queries;
        const auto table_row = [&](int64_t j) { return std::clamp(j - position, -clip, clip) + clip; };
        std::vector<double> w(static_cast<size_t>(keys));
        double total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const int64_t mask_row = (o.mask.defined() ? (o.mask.size(0) == 1 ? 0 : s) * o.mask.size(1) + i : 0);
          const bool allowed = (!o.causal || j <= position) && allows(o.pattern, position, j) &&
                               (!o.mask.defined() || o.mask.data<uint8_t>()[mask_row * o.mask.size(2) + j] != 0);
          const int64_t k_row = (o.key_sequences.begin(s) + j) * k.size(1) + h / group;
          double score = 0;
          for (int64_t c = 0; c < d_k; ++c) {
            const double relative = a.defined() ? a.data<double>()[table_row(j) * d_k + c] : 0;
            score += q.data<double>()[q_row * d_k + c] * (k.data<double>()[k_row * d_k + c] + relative);
          }
          score *= scale;
          if (o.alibi) {
            const std::vector<double> slopes = alibi_slopes(heads);
            score -= slopes[static_cast<size_t>(h)] * static_cast<double>(std::abs(position - j));
          }
          if (bias.defined())
            score += bias.data<double>()[(std::clamp(j - position, -reach, reach) + reach) * heads + h];
          w[static_cast<size_t>(j)] = allowed ? std::exp(score) : 0;
          total += w[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < keys && total > 0; ++j) {
          const double weight = w[static_cast<size_t>(j)] / total;
          if (weights) weights->data<double>()[((s * heads + h) * most_q + i) * most_k + j] = weight;
          const bool keep = weight == 0 || keep_mask(o.dropout, q_row, dropout_column(o.pattern, position, j));
          const double factor = keep ? weight / (1 - o.dropout.probability) : 0;
          const int64_t v_row = (o.key_sequences.begin(s) + j) * k.size(1) + h / group;
          for (int64_t c = 0; c < d_v; ++c) {
            const double relative = b.defined() ? b.data<double>()[table_row(j) * d_v + c] : 0;
            out.data<double>()[q_row * d_v + c] += factor * (v.data<double>()[v_row * d_v + c] + relative);
          }
        }
      }
    }
  }
  return out;
}

// Weights, output and gradients of devices_under_test() against those of the CPU: the largest relative error. `narrow`:
// q, k and v are rounded to bfloat16 where attention reads that.
inline double device_error(const Problem& p, bool narrow = false) {
  std::vector<Tensor> inputs{p.q, p.k, p.v};
  const bool keys = p.options.relative_keys.defined(), values = p.options.relative_values.defined();
  if (keys) inputs.push_back(p.options.relative_keys);
  if (values) inputs.push_back(p.options.relative_values);
  const bool bias = p.options.distance_bias.defined();
  if (bias) inputs.push_back(p.options.distance_bias);
  std::vector<Tensor> weights;
  const auto run = [&](const std::vector<Tensor>& t) {
    AttentionOptions options = p.options;
    if (keys) options.relative_keys = t[3];
    if (values) options.relative_values = t[keys ? 4 : 3];
    if (bias) options.distance_bias = t.back();
    if (p.options.mask.defined()) options.mask = p.options.mask.to(t[0].device());
    const auto heads = [&](const Tensor& x) {
      return head_columns(narrow && attention_reads_bfloat16(x.device()) ? for_products(x) : x);
    };
    const AttentionResult result = attention(heads(t[0]), heads(t[1]), heads(t[2]), options, true);
    weights.push_back(result.weights);
    return for_sums(result.heads);
  };
  double error = device_error(run, inputs);  // the CPU comes first
  for (size_t i = 1; i < weights.size(); ++i) error = larger_error(error, relative_error(weights[i], weights[0]));
  return error;
}

inline Tensor random_mask(const Sizes& s, bool per_sequence) {
  const Sequences q = Sequences::from_lengths(s.queries), k = Sequences::from_lengths(s.keys);
  const int64_t blocks = per_sequence ? q.count() : 1;
  const Tensor draw = normal({blocks, q.max_length(), k.max_length()}, {.seed = 99});
  Tensor mask = Tensor::empty(draw.shape(), {.dtype = DType::u8});
  for (int64_t i = 0; i < draw.numel(); ++i) mask.data<uint8_t>()[i] = draw.data<double>()[i] > -0.5;
  return mask;
}

}  // namespace attune

#include "attune/ops/attention/attention.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/attention/attention.h"
#include "attune/ops/attention/attention_check.h"
#include "attune/ops/attention/relative_tables.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_mask(const AttentionOptions& options) {
  if (!options.mask.defined()) return;
  const Tensor& mask = options.mask;
  const Sequences& queries = options.query_sequences;
  const Sequences& keys = options.key_sequences;
  if (mask.dtype() != DType::u8 || mask.rank() != 3 || (mask.size(0) != 1 && mask.size(0) != queries.count()) ||
      mask.size(1) < queries.max_length() || mask.size(2) < keys.max_length())
    fail<ShapeError>("attention: mask is {} {}, needs uint8 [{} or 1, at least {}, at least {}]", name_of(mask.dtype()),
                     mask.shape().text(), queries.count(), queries.max_length(), keys.max_length());
}

void check_lengths(const AttentionOptions& options) {
  check_pattern("attention", options.pattern);
  if (std::holds_alternative<FullAttention>(options.pattern)) return;
  for (int64_t s = 0; s < options.query_sequences.count(); ++s) {
    const int64_t queries = options.query_sequences.length(s), keys = options.key_sequences.length(s);
    if (queries > keys)
      fail<ShapeError>("attention: sequence {} has {} queries but {} keys; a pattern is for self-attention", s, queries,
                       keys);
  }
}

// The shape of the heads as text, [rows, heads, d].
std::string text(const HeadColumns& part) {
  return Shape{part.x.size(0), part.heads, part.d}.text();
}

void check(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options) {
  check_dropout("attention", options.dropout);
  if (q.x.dtype() == DType::bf16 && !attention_reads_bfloat16(q.x.device()))
    fail<ShapeError>("attention: q is bfloat16, which needs a GPU; {} needs float32", q.x.device().text());
  if (q.x.dtype() != DType::bf16 && !is_floating(q.x.dtype())) refuse_dtype("attention", q.x.dtype());
  check_scale("attention", options.scale);
  check_soft_cap("attention", options.soft_cap, options.alibi || options.distance_bias.defined());
  if (q.x.dtype() != k.x.dtype() || q.x.dtype() != v.x.dtype())
    fail<ShapeError>("attention: q is {}, k {}, v {}", name_of(q.x.dtype()), name_of(k.x.dtype()),
                     name_of(v.x.dtype()));
  check_device("attention", q.x,
               {k.x, v.x, options.mask, options.relative_keys, options.relative_values, options.distance_bias});
  if (q.d != k.d) fail<ShapeError>("attention: q {} has d_k = {} but k {} has {}", text(q), q.d, text(k), k.d);
  if (k.x.size(0) != v.x.size(0) || k.heads != v.heads)
    fail<ShapeError>("attention: k {} and v {} differ in rows or heads", text(k), text(v));
  if (q.heads < 1 || k.heads < 1 || q.heads % k.heads != 0)
    fail<ShapeError>("attention: {} query heads are not divisible by {} key heads", q.heads, k.heads);
  const Sequences& queries = options.query_sequences;
  const Sequences& keys = options.key_sequences;
  if (queries.count() != keys.count())
    fail<ShapeError>("attention: {} query sequences but {} key sequences", queries.count(), keys.count());
  if (queries.total() != q.x.size(0))
    fail<ShapeError>("attention: sequences hold {} rows but q has {}", queries.total(), q.x.size(0));
  if (keys.total() != k.x.size(0))
    fail<ShapeError>("attention: sequences hold {} rows but k has {}", keys.total(), k.x.size(0));
  check_mask(options);
  check_lengths(options);
  const DType sums = sum_type(q.x.dtype());  // of scores, weights and tables
  check_relative_tables("attention", options.relative_keys, options.relative_values, sums, q.d, v.d);
  check_distance_bias("attention", options.distance_bias, sums, q.heads);
}

Tensor empty_or_undefined(const Tensor& like) {
  return like.defined() ? Tensor::empty_like(like) : Tensor{};
}

// The three inputs, and for each the index of the input whose gradient tensor it shares: inputs that are different
// columns of one tensor share that of the first of them. Inputs that read the same columns have one each.
struct Parts {
  std::array<HeadColumns, 3> heads;  // q, k, v
  std::array<size_t, 3> owner;
  bool bfloat16_products;  // of the forward pass; backward follows it
};

AttentionInputs inputs_of(const Parts& in, const AttentionOptions& o) {
  const auto& [q, k, v] = in.heads;
  return {.q = q,
          .k = k,
          .v = v,
          .query_offsets = o.query_sequences.offsets(),
          .key_offsets = o.key_sequences.offsets(),
          .causal = o.causal,
          .mask = o.mask,
          .pattern = o.pattern,
          .slopes = o.alibi ? alibi_slopes(q.heads) : std::vector<double>{},
          .relative_keys = o.relative_keys,
          .relative_values = o.relative_values,
          .clip = relative_clip(o.relative_keys, o.relative_values),
          .distance_bias = o.distance_bias,
          .dropout = o.dropout,
          .scale = o.scale > 0 ? o.scale : 1.0 / std::sqrt(static_cast<double>(q.d)),
          .soft_cap = o.soft_cap,
          .bfloat16_products = in.bfloat16_products};
}

// 2^(-8 (h + 1) / n) for h = 0, step, 2 step, ...
void append_slopes(int64_t n, int64_t step, int64_t count, std::vector<double>& slopes) {
  for (int64_t i = 0; i < count; ++i)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i * step + 1) / static_cast<double>(n)));
}

bool overlap(const HeadColumns& a, const HeadColumns& b) {
  return a.column < b.column + b.heads * b.d && b.column < a.column + a.heads * a.d;
}

bool are_parts_of_one(const HeadColumns& a, const HeadColumns& b) {
  return a.x.address() == b.x.address() && a.x.shape() == b.x.shape() && a.x.node() == b.x.node() && !overlap(a, b);
}

Parts parts_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v) {
  Parts parts{.heads = {q, k, v}, .owner = {0, 1, 2}, .bfloat16_products = bfloat16_products()};
  for (size_t i = 1; i < 3; ++i) {
    for (size_t j = 0; j < i && parts.owner[i] == i; ++j) {
      bool fits = parts.owner[j] == j;
      for (size_t other = j; other < i; ++other)
        if (parts.owner[other] == j) fits = fits && are_parts_of_one(parts.heads[other], parts.heads[i]);
      if (fits) parts.owner[i] = j;
    }
  }
  for (HeadColumns& part : parts.heads) part.x = part.x.detach();
  return parts;
}

// The gradient tensors of the owners, with zeros in columns that no input reads; undefined for the other inputs.
std::array<Tensor, 3> make_gradients(const Parts& in) {
  std::array<Tensor, 3> gradients;
  for (size_t i = 0; i < 3; ++i) {
    if (in.owner[i] != i) continue;
    const Tensor& x = in.heads[i].x;
    int64_t columns = 0;
    for (size_t j = i; j < 3; ++j) columns += in.owner[j] == i ? in.heads[j].heads * in.heads[j].d : 0;
    gradients[i] = columns == x.size(1) ? Tensor::empty_like(x) : Tensor::zeros_like(x);
  }
  return gradients;
}

}  // namespace

bool attention_reads_bfloat16(const Device& device) {
  return device.kind() == Device::Kind::cuda;
}

HeadColumns head_columns(const Tensor& x) {
  if (x.rank() != 3) fail<ShapeError>("attention: needs q, k and v as [rows, heads, d], found {}", x.shape().text());
  return {.x = x.reshape({x.size(0), x.size(1) * x.size(2)}), .heads = x.size(1), .d = x.size(2)};
}

std::vector<double> alibi_slopes(int64_t heads) {
  if (heads < 1) fail<ConfigError>("alibi_slopes: heads = {}, needs at least 1", heads);
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  append_slopes(below, 1, below, slopes);
  append_slopes(2 * below, 2, heads - below, slopes);
  return slopes;
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    fail<ShapeError>("attention: needs q, k and v as [rows, heads, d], found {}, {} and {}", q.shape().text(),
                     k.shape().text(), v.shape().text());
  return attention(head_columns(q), head_columns(k), head_columns(v), options);
}

AttentionResult attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                          const AttentionOptions& options, bool with_weights) {
  const ProfileScope scope("attention");
  check_columns("attention", "q", q);
  check_columns("attention", "k", k);
  check_columns("attention", "v", v);
  check(q, k, v, options);
  Parts parts = parts_of(q, k, v);
  const TensorOptions sums{sum_type(q.x.dtype()), q.x.device()};
  Tensor out = Tensor::empty({q.x.size(0), q.heads, v.d}, {q.x.dtype(), q.x.device()});
  const Tensor log_sum_exp = Tensor::empty({q.x.size(0), q.heads}, sums);
  Tensor weights;
  if (with_weights)
    weights = Tensor::zeros({options.query_sequences.count(), q.heads, options.query_sequences.max_length(),
                             options.key_sequences.max_length()},
                            sums);
  const AttentionInputs in = inputs_of(parts, options);
  dispatch(q.x.device(), [&](auto device) {
    attention_forward(device, in, out, log_sum_exp);
    if (with_weights) attention_weights(device, in, log_sum_exp, weights);
  });
  const Tensor &a = options.relative_keys, &b = options.relative_values, &bias = options.distance_bias;
  if (!is_recording({q.x, k.x, v.x, a, b, bias})) return {out, weights};

  AttentionOptions kept = options;
  kept.relative_keys = a.detach();
  kept.relative_values = b.detach();
  kept.distance_bias = bias.detach();
  record("attention", {q.x, k.x, v.x, a, b, bias}, out,
         [in = std::move(parts), out = out.detach(), log_sum_exp, kept = std::move(kept)](const Tensor& dy) {
           const auto [dq, dk, dv] = make_gradients(in);
           Gradients gradients{dq,
                               dk,
                               dv,
                               empty_or_undefined(kept.relative_keys),
                               empty_or_undefined(kept.relative_values),
                               empty_or_undefined(kept.distance_bias)};
           const auto columns = [&](size_t i) {
             const HeadColumns& part = in.heads[i];
             return HeadColumns{gradients[in.owner[i]], part.column, part.heads, part.d};
           };
           const AttentionInputs inputs = inputs_of(in, kept);
           const AttentionGradients to{.dq = columns(0),
                                       .dk = columns(1),
                                       .dv = columns(2),
                                       .d_relative_keys = gradients[3],
                                       .d_relative_values = gradients[4],
                                       .d_distance_bias = gradients[5]};
           const Tensor d_out = out.dtype() == DType::bf16 ? to_bfloat16(dy) : dy;  // float32 if several were added
           dispatch(dy.device(), [&](auto device) { attention_backward(device, inputs, out, log_sum_exp, d_out, to); });
           return gradients;
         });
  return {out, weights};
}

Tensor attention(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options) {
  return attention(q, k, v, options, false).heads;
}

}  // namespace attune

#include "attune/ops/attention.h"

#include <bit>
#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/ops/attention_kernel.h"
#include "attune/ops/relative_tables.h"

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

void check_places(const AttentionOptions& options) {
  check_pattern("attention", options.pattern);
  if (std::holds_alternative<FullAttention>(options.pattern)) return;
  for (int64_t s = 0; s < options.query_sequences.count(); ++s) {
    const int64_t queries = options.query_sequences.length(s), keys = options.key_sequences.length(s);
    if (queries > keys)
      fail<ShapeError>("attention: sequence {} has {} queries but {} keys; a pattern is for self-attention", s, queries,
                       keys);
  }
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_dropout("attention", options.dropout);
  if (options.scale < 0)
    fail<ShapeError>("attention: scale = {}, needs a positive number, or 0 for 1 / sqrt(d_k)", options.scale);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    fail<ShapeError>("attention: needs q, k and v as [rows, heads, d], found {}, {} and {}", q.shape().text(),
                     k.shape().text(), v.shape().text());
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype())
    fail<ShapeError>("attention: q is {}, k {}, v {}", name_of(q.dtype()), name_of(k.dtype()), name_of(v.dtype()));
  if (q.size(2) != k.size(2))
    fail<ShapeError>("attention: q {} has d_k = {} but k {} has {}", q.shape().text(), q.size(2), k.shape().text(),
                     k.size(2));
  if (k.size(0) != v.size(0) || k.size(1) != v.size(1))
    fail<ShapeError>("attention: k {} and v {} differ in rows or heads", k.shape().text(), v.shape().text());
  if (k.size(1) < 1 || q.size(1) % k.size(1) != 0)
    fail<ShapeError>("attention: {} query heads are not divisible by {} key heads", q.size(1), k.size(1));
  const Sequences& queries = options.query_sequences;
  const Sequences& keys = options.key_sequences;
  if (queries.count() != keys.count())
    fail<ShapeError>("attention: {} query sequences but {} key sequences", queries.count(), keys.count());
  if (queries.total() != q.size(0))
    fail<ShapeError>("attention: sequences hold {} rows but q has {}", queries.total(), q.size(0));
  if (keys.total() != k.size(0))
    fail<ShapeError>("attention: sequences hold {} rows but k has {}", keys.total(), k.size(0));
  check_mask(options);
  check_places(options);
  check_relative_tables("attention", options.relative_keys, options.relative_values, q.dtype(), q.size(2), v.size(2));
}

template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}
Tensor empty_or_undefined(const Tensor& like) {
  return like.defined() ? Tensor::empty_like(like) : Tensor{};
}

template <class T>
AttentionInputs<T> inputs(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const bool masked = o.mask.defined();
  return {.q = q.data<T>(),
          .k = k.data<T>(),
          .v = v.data<T>(),
          .heads = q.size(1),
          .kv_heads = k.size(1),
          .d_k = q.size(2),
          .d_v = v.size(2),
          .query_offsets = o.query_sequences.offsets().data(),
          .key_offsets = o.key_sequences.offsets().data(),
          .sequences = o.query_sequences.count(),
          .causal = o.causal,
          .mask = masked ? o.mask.data<uint8_t>() : nullptr,
          .mask_sequences = masked ? o.mask.size(0) : 0,
          .mask_queries = masked ? o.mask.size(1) : 0,
          .mask_keys = masked ? o.mask.size(2) : 0,
          .pattern = o.pattern,
          .slopes = o.alibi ? alibi_slopes(q.size(1)) : std::vector<double>{},
          .relative_keys = data_or_null<T>(o.relative_keys),
          .relative_values = data_or_null<T>(o.relative_values),
          .clip = relative_clip(o.relative_keys, o.relative_values),
          .dropout = o.dropout,
          .scale = o.scale > 0 ? o.scale : 1.0 / std::sqrt(static_cast<double>(q.size(2)))};
}

// 2^(-8 (h + 1) / n) for h = 0, step, 2 step, ...
void append_slopes(int64_t n, int64_t step, int64_t count, std::vector<double>& slopes) {
  for (int64_t i = 0; i < count; ++i)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i * step + 1) / static_cast<double>(n)));
}

}  // namespace

std::vector<double> alibi_slopes(int64_t heads) {
  if (heads < 1) fail<ConfigError>("alibi_slopes: heads = {}, needs at least 1", heads);
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  append_slopes(below, 1, below, slopes);
  append_slopes(2 * below, 2, heads - below, slopes);
  return slopes;
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  const ProfileScope scope("attention");
  check(q, k, v, options);
  Tensor out = Tensor::empty({q.size(0), q.size(1), v.size(2)}, {q.dtype(), q.device()});
  const Tensor log_sum_exp = Tensor::empty({q.size(0), q.size(1)}, {q.dtype(), q.device()});
  dispatch_floating("attention", q.dtype(), [&]<class T>(T) {
    dispatch(q.device(), [&](auto device) {
      const AttentionInputs<T> in = inputs<T>(q, k, v, options);
      attention_forward(device, {.in = in, .out = out.data<T>(), .log_sum_exp = log_sum_exp.data<T>()});
      if (options.weights == nullptr) return;
      const int64_t most_queries = options.query_sequences.max_length();
      const int64_t most_keys = options.key_sequences.max_length();
      *options.weights = Tensor::zeros({in.sequences, in.heads, most_queries, most_keys}, {q.dtype(), q.device()});
      attention_weights<T>(device, in, log_sum_exp.data<T>(), options.weights->template data<T>(), most_queries,
                           most_keys);
    });
  });
  const Tensor &a = options.relative_keys, &b = options.relative_values;
  if (!is_recording({q, k, v, a, b})) return out;

  AttentionOptions kept = options;
  kept.weights = nullptr;
  kept.relative_keys = a.detach();
  kept.relative_values = b.detach();
  record("attention", {q, k, v, a, b}, out,
         [q = q.detach(), k = k.detach(), v = v.detach(), out = out.detach(), log_sum_exp,
          kept = std::move(kept)](const Tensor& dy) {
           Gradients gradients{Tensor::empty_like(q), Tensor::empty_like(k), Tensor::empty_like(v),
                               empty_or_undefined(kept.relative_keys), empty_or_undefined(kept.relative_values)};
           dispatch_floating("attention", q.dtype(), [&]<class T>(T) {
             dispatch(q.device(), [&](auto device) {
               attention_backward(device, {.in = inputs<T>(q, k, v, kept),
                                           .out = out.data<T>(),
                                           .log_sum_exp = log_sum_exp.data<T>(),
                                           .d_out = dy.data<T>(),
                                           .dq = gradients[0].data<T>(),
                                           .dk = gradients[1].data<T>(),
                                           .dv = gradients[2].data<T>(),
                                           .d_relative_keys = data_or_null<T>(gradients[3]),
                                           .d_relative_values = data_or_null<T>(gradients[4])});
             });
           });
           return gradients;
         });
  return out;
}

}  // namespace attune

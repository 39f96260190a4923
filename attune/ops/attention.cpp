#include "attune/ops/attention.h"

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/ops/attention_kernel.h"

namespace attune {
namespace {

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
  if (!options.mask.defined()) return;
  const Tensor& mask = options.mask;
  if (mask.dtype() != DType::u8 || mask.rank() != 3 || (mask.size(0) != 1 && mask.size(0) != queries.count()) ||
      mask.size(1) < queries.max_length() || mask.size(2) < keys.max_length())
    fail<ShapeError>("attention: mask is {} {}, needs uint8 [{} or 1, at least {}, at least {}]", name_of(mask.dtype()),
                     mask.shape().text(), queries.count(), queries.max_length(), keys.max_length());
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
          .dropout = o.dropout,
          .scale = o.scale > 0 ? o.scale : 1.0 / std::sqrt(static_cast<double>(q.size(2)))};
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
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
  if (!is_recording({q, k, v})) return out;

  AttentionOptions kept = options;
  kept.weights = nullptr;
  record("attention", {q, k, v}, out,
         [q = q.detach(), k = k.detach(), v = v.detach(), out = out.detach(), log_sum_exp,
          kept = std::move(kept)](const Tensor& dy) {
           Gradients gradients{Tensor::empty_like(q), Tensor::empty_like(k), Tensor::empty_like(v)};
           dispatch_floating("attention", q.dtype(), [&]<class T>(T) {
             dispatch(q.device(), [&](auto device) {
               attention_backward(device, {.in = inputs<T>(q, k, v, kept),
                                           .out = out.data<T>(),
                                           .log_sum_exp = log_sum_exp.data<T>(),
                                           .d_out = dy.data<T>(),
                                           .dq = gradients[0].data<T>(),
                                           .dk = gradients[1].data<T>(),
                                           .dv = gradients[2].data<T>()});
             });
           });
           return gradients;
         });
  return out;
}

}  // namespace attune

#include "attune/ops/attention/guided_attention.h"

#include <cmath>
#include <memory>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/attention/guided_attention.h"
#include "attune/ops/attention/attention_check.h"
#include "attune/ops/rows.h"
#include "attune/ops/scale.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

constexpr const char* kOp = "guided_attention_loss";

void check_heads(const char* name, const HeadColumns& part, const Sequences& sequences) {
  check_columns(kOp, name, part);
  if (part.heads < 1 || part.d < 1)
    fail<ShapeError>("{}: {} has {} heads of {} columns, needs at least one head of at least one column", kOp, name,
                     part.heads, part.d);
  if (part.x.size(0) != sequences.total())
    fail<ShapeError>("{}: {} has {} rows, its sequences have {}", kOp, name, part.x.size(0), sequences.total());
}

void check_links(const GuidedAttentionOptions& o) {
  const auto& [offsets, keys] = o.links;
  if (static_cast<int64_t>(offsets.size()) != o.query_sequences.total() + 1)
    fail<ShapeError>("{}: {} offsets for the links of {} queries", kOp, offsets.size(), o.query_sequences.total());
  if (offsets.front() != 0 || offsets.back() != static_cast<int64_t>(keys.size()))
    fail<ShapeError>("{}: offsets from {} to {} for {} links", kOp, offsets.front(), offsets.back(), keys.size());
  for (size_t row = 0; row + 1 < offsets.size(); ++row)  // all of them, before a link is read
    if (offsets[row + 1] < offsets[row]) fail<ShapeError>("{}: the links of query {} end before they begin", kOp, row);
  for (int64_t s = 0; s < o.query_sequences.count(); ++s) {
    for (int64_t row = o.query_sequences.begin(s); row < o.query_sequences.begin(s) + o.query_sequences.length(s);
         ++row) {
      const int32_t begin = offsets[static_cast<size_t>(row)], end = offsets[static_cast<size_t>(row) + 1];
      for (int32_t i = begin; i < end; ++i)
        if (const int32_t key = keys[static_cast<size_t>(i)]; key < 0 || key >= o.key_sequences.length(s))
          fail<DataError>("{}: query {} has a link to key {} of {}", kOp, row, key, o.key_sequences.length(s));
    }
  }
}

void check(const HeadColumns& q, const HeadColumns& k, const GuidedAttentionOptions& o) {
  if (o.query_sequences.count() != o.key_sequences.count())
    fail<ShapeError>("{}: {} sequences of queries but {} of keys", kOp, o.query_sequences.count(),
                     o.key_sequences.count());
  check_heads("q", q, o.query_sequences);
  check_heads("k", k, o.key_sequences);
  if (!is_floating(q.x.dtype())) refuse_dtype(kOp, q.x.dtype());
  if (q.x.dtype() != k.x.dtype() || q.d != k.d || q.heads % k.heads != 0)
    fail<ShapeError>("{}: q {} of {} heads of {} does not fit k {} of {} heads of {}", kOp, name_of(q.x.dtype()),
                     q.heads, q.d, name_of(k.x.dtype()), k.heads, k.d);
  if (o.head < 0 || o.head >= q.heads) fail<ShapeError>("{}: head {} of {}", kOp, o.head, q.heads);
  check_scale(kOp, o.scale);
  check_soft_cap(kOp, o.soft_cap, false);
  check_device(kOp, q.x, {k.x});
  check_links(o);
}

// What backward needs; no tensor in it has a node.
struct Kept {
  HeadColumns q, k;
  GuidedAttentionOptions options;
  Tensor log_sum_exp;

  GuidedAttentionInputs inputs() const {
    return {.q = q,
            .k = k,
            .query_offsets = options.query_sequences.offsets(),
            .key_offsets = options.key_sequences.offsets(),
            .link_offsets = options.links.offsets,
            .link_keys = options.links.keys,
            .head = options.head,
            .scale = options.scale > 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(q.d)),
            .soft_cap = options.soft_cap};
  }
};

HeadColumns detached(const HeadColumns& part) {
  return {part.x.detach(), part.column, part.heads, part.d};
}

}  // namespace

Tensor guided_attention_loss(const HeadColumns& q, const HeadColumns& k, const GuidedAttentionOptions& options) {
  const ProfileScope scope(kOp);
  check(q, k, options);
  const auto kept =
      std::make_shared<const Kept>(Kept{.q = detached(q),
                                        .k = detached(k),
                                        .options = options,
                                        .log_sum_exp = Tensor::empty({q.x.size(0)}, {DType::f64, q.x.device()})});
  const Tensor sum = Tensor::empty({1}, {DType::f64, q.x.device()});
  dispatch(q.x.device(),
           [&](auto device) { guided_attention_forward(device, kept->inputs(), kept->log_sum_exp, sum); });
  Tensor loss = scaled(sum, options.loss_scale).to(q.x.dtype()).reshape({});
  record(kOp, {q.x, k.x}, loss, [kept](const Tensor& dy) {
    const HeadColumns dq{Tensor::zeros_like(kept->q.x), kept->q.column, kept->q.heads, kept->q.d};
    const HeadColumns dk{Tensor::zeros_like(kept->k.x), kept->k.column, kept->k.heads, kept->k.d};
    const double factor = kept->options.loss_scale * dy.item();
    dispatch(kept->q.x.device(), [&](auto device) {
      guided_attention_backward(device, kept->inputs(), kept->log_sum_exp, factor, dq, dk);
    });
    return Gradients{dq.x, dk.x};
  });
  return loss;
}

}  // namespace attune

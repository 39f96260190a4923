#include "attune/nn/attention/attention.h"

#include "attune/base/fail.h"

namespace attune {

Tensor guided_loss(const HeadColumns& q, const HeadColumns& k, const AttentionMask& mask, double scale,
                   double soft_cap) {
  if (mask.guide == nullptr) return {};
  if (mask.causal || mask.allowed.defined())
    fail<ConfigError>("a guided head attends to every key of its sequence: the mask may hide none");
  return guided_attention_loss(q, k,
                               {.query_sequences = mask.queries,
                                .key_sequences = mask.keys,
                                .links = mask.guide->links,
                                .head = mask.guide->head,
                                .scale = scale,
                                .soft_cap = soft_cap,
                                .loss_scale = mask.guide->loss_scale});
}

}  // namespace attune

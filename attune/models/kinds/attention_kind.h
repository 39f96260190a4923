#pragma once
// The kinds of attention that a model can have. To add one, write a file like multi_head.h and add it to the variant.

#include <variant>

#include "attune/models/kinds/multi_head.h"
#include "attune/models/kinds/multi_head_latent.h"

namespace [[gnu::visibility("default")]] attune {

/// Every kind has its fields, a `pattern`, its name in configurations (kName), and
///   validate(field, setting)     throws ConfigError; `field` is the field of the configuration that holds this kind
///   parameter_count(setting)     numbers of its parameters
///   cache_width(d_model, heads)  numbers that decoding keeps for each token in one layer
///   build(setting)               the module
///   summary(d_model, heads)      one line of `attune inspect`
///   kTitle, kCrossTitle          what a drawing calls it in self- and in cross-attention
///   detail(d_model, heads)       what a drawing says beside the number of heads
using AttentionKind = std::variant<MultiHead, MultiHeadLatent>;

template <>
struct VariantNames<AttentionKind> {
  static constexpr const char* values[] = {MultiHead::kName, MultiHeadLatent::kName};
};

inline const AttentionPattern& pattern_of(const AttentionKind& kind) {
  return std::visit([](const auto& k) -> const AttentionPattern& { return k.pattern; }, kind);
}

/// Numbers that decoding keeps for each token in one layer.
inline int64_t cache_width(const AttentionKind& kind, int64_t d_model, int64_t heads) {
  return std::visit([&](const auto& k) { return k.cache_width(d_model, heads); }, kind);
}

}  // namespace attune

#include "attune/models/kinds/multi_head.h"

#include <fmt/format.h>

#include "attune/base/check.h"
#include "attune/models/kinds/attention_setting.h"
#include "attune/nn/multi_head_attention.h"

namespace attune {

bool MultiHead::has_query_key_value_bias() const {
  return bias == AttentionBias::all || bias == AttentionBias::query_key_value;
}

bool MultiHead::has_output_bias() const {
  return bias == AttentionBias::all || bias == AttentionBias::output;
}

void MultiHead::validate(const std::string& field, const AttentionSetting& setting) const {
  check_range(field + ".kv_heads", kv_heads, 0, setting.heads);
  if (setting.heads % key_heads(setting.heads) != 0)
    fail<ConfigError>("{}.kv_heads = {}: heads = {} are not divisible by it", field, kv_heads, setting.heads);
  check_attention_scale(field, scale);
  if (setting.positions.rotary) check_rotary_width("d_model / heads", setting.head_dim(), *setting.positions.rotary);
}

int64_t MultiHead::parameter_count(const AttentionSetting& setting) const {
  const int64_t d = setting.d_model, keys = key_heads(setting.heads) * setting.head_dim();
  const int64_t relative = 2 * setting.positions.relative_clip + 1;
  return 2 * d * d + 2 * d * keys + (has_query_key_value_bias() ? d + 2 * keys : 0) + (has_output_bias() ? d : 0) +
         (relative > 1 ? 2 * relative * setting.head_dim() : 0);
}

int64_t MultiHead::cache_width(int64_t d_model, int64_t heads) const {
  return 2 * key_heads(heads) * (d_model / heads);
}

std::unique_ptr<Attention> MultiHead::build(const AttentionSetting& setting) const {
  MultiHeadAttentionConfig config{.d_model = setting.d_model,
                                  .heads = setting.heads,
                                  .kv_heads = kv_heads,
                                  .query_key_value_bias = has_query_key_value_bias(),
                                  .output_bias = has_output_bias(),
                                  .scale = scale,
                                  .dropout = setting.dropout,
                                  .positions = setting.positions};
  config.positions.pattern = pattern;
  return std::make_unique<MultiHeadAttention>(config);
}

std::string MultiHead::summary(int64_t, int64_t heads) const {
  const int64_t keys = key_heads(heads);
  std::string text = keys == heads ? "multi-head"
                     : keys == 1   ? "multi-query"
                                   : fmt::format("grouped-query, {} key heads", keys);
  if (bias == AttentionBias::none) text += " without biases";
  if (bias == AttentionBias::query_key_value) text += ", biases of query, key and value";
  if (bias == AttentionBias::output) text += ", a bias of the output";
  if (scale > 0) text += fmt::format(", scale {}", scale);
  return text;
}

std::string MultiHead::detail(int64_t, int64_t heads) const {
  const int64_t keys = key_heads(heads);
  return keys == heads ? "" : fmt::format("{} of keys and values", keys);
}

}  // namespace attune

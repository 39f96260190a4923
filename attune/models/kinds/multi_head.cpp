#include "attune/models/kinds/multi_head.h"

#include <fmt/format.h>

#include <cmath>

#include "attune/base/check.h"
#include "attune/models/kinds/attention_setting.h"
#include "attune/nn/attention/multi_head_attention.h"

namespace attune {

bool MultiHead::has_query_key_value_bias() const {
  return bias == AttentionBias::all || bias == AttentionBias::query_key_value;
}

bool MultiHead::has_output_bias() const {
  return bias == AttentionBias::all || bias == AttentionBias::output;
}

double MultiHead::scale_in(const AttentionSetting& setting) const {
  const auto width = static_cast<double>(head_width(setting.d_model, setting.heads));
  const double of_all = scale > 0 ? scale : 1 / std::sqrt(width);
  return scale_by_layer ? of_all / static_cast<double>(setting.layer + 1) : of_all;
}

void MultiHead::validate(const std::string& field, const AttentionSetting& setting) const {
  check_range(field + ".kv_heads", kv_heads, 0, setting.heads);
  if (setting.heads % key_heads(setting.heads) != 0)
    fail<ConfigError>("{}.kv_heads = {}: {} = {} is not divisible by it", field, kv_heads, setting.heads_field,
                      setting.heads);
  check_attention_scale(field, scale);
  if (scale_by_layer && setting.shared_layers)
    fail<ConfigError>("{}.scale_by_layer = true: needs share_layers = false", field);
  check_range(field + ".head_dim", head_dim, 0, 1 << 12);
  if (head_dim == 0) check_divides_width(setting);
  if (!(soft_cap >= 0 && std::isfinite(soft_cap)))
    fail<ConfigError>("{}.soft_cap = {}: needs a positive number, or 0 for none", field, soft_cap);
  if (soft_cap > 0 && (setting.positions.alibi || setting.relative_bias))
    fail<ConfigError>("{}.soft_cap = {}: positions add to the scores, which are capped", field, soft_cap);
  const int64_t width = head_width(setting.d_model, setting.heads);
  if (setting.positions.rotary)
    check_rotary_width(head_dim > 0 ? field + ".head_dim" : "d_model / heads", width, setting);
}

int64_t MultiHead::parameter_count(const AttentionSetting& setting) const {
  const int64_t d = setting.d_model, width = head_width(d, setting.heads);
  const int64_t queries = setting.heads * width, keys = key_heads(setting.heads) * width;
  const int64_t relative = 2 * setting.positions.relative_clip + 1;
  const int64_t of_norm = LayerNorm::parameter_count(width, setting.norm.options.form, setting.norm.bias);
  return 2 * d * queries + 2 * d * keys + (has_query_key_value_bias() ? queries + 2 * keys : 0) +
         (has_output_bias() ? d : 0) + (relative > 1 ? 2 * relative * width : 0) + (head_norm ? 2 * of_norm : 0);
}

int64_t MultiHead::cache_width(int64_t d_model, int64_t heads) const {
  return 2 * key_heads(heads) * head_width(d_model, heads);
}

std::unique_ptr<Attention> MultiHead::build(const AttentionSetting& setting) const {
  MultiHeadAttentionConfig config{.d_model = setting.d_model,
                                  .heads = setting.heads,
                                  .kv_heads = kv_heads,
                                  .head_dim = head_dim,
                                  .query_key_value_bias = has_query_key_value_bias(),
                                  .output_bias = has_output_bias(),
                                  .head_norm = head_norm,
                                  .norm = setting.norm,
                                  .soft_cap = soft_cap,
                                  .scale = scale_in(setting),
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
  if (head_dim > 0) text += fmt::format(", heads of {}", head_dim);
  if (head_norm) text += ", norms of queries and keys";
  if (soft_cap > 0) text += fmt::format(", scores capped at {}", soft_cap);
  if (scale > 0) text += fmt::format(", scale {}", scale);
  if (scale_by_layer) text += ", scale divided by the layer's number";
  return text;
}

std::string MultiHead::detail(int64_t, int64_t heads) const {
  const int64_t keys = key_heads(heads);
  return keys == heads ? "" : fmt::format("{} of keys and values", keys);
}

}  // namespace attune

#include "attune/models/kinds/multi_head_latent.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/base/check.h"
#include "attune/models/kinds/attention_setting.h"
#include "attune/nn/attention/multi_head_latent_attention.h"

namespace attune {

int64_t MultiHeadLatent::latent_width(int64_t d_model) const {
  return latent_dim > 0 ? latent_dim : std::max<int64_t>(1, d_model / 4);
}

int64_t MultiHeadLatent::key_width(const AttentionSetting& setting) const {
  return head_dim > 0 ? head_dim : setting.head_dim();
}

int64_t MultiHeadLatent::value_width(const AttentionSetting& setting) const {
  return value_dim > 0 ? value_dim : key_width(setting);
}

void MultiHeadLatent::validate(const std::string& field, const AttentionSetting& setting) const {
  check_range(field + ".latent_dim", latent_dim, 0, 4 * setting.d_model);
  check_range(field + ".query_latent_dim", query_latent_dim, 0, 4 * setting.d_model);
  check_range(field + ".head_dim", head_dim, 0, 1 << 12);
  check_range(field + ".value_dim", value_dim, 0, 1 << 12);
  check_range(field + ".rotary_dim", rotary_dim, 0, 1 << 12);
  check_attention_scale(field, scale);
  if (head_dim == 0) check_divides_width(setting);
  if (setting.positions.rotary) {
    if (rotary_dim == 0)
      fail<ConfigError>(
          "{}.rotary_dim = 0: {} = \"rotary\" needs a rotary_dim above 0, since latent attention rotates separate "
          "dimensions",
          field, setting.positions_field);
    check_rotary_width(field + ".rotary_dim", rotary_dim, setting);
  } else if (rotary_dim > 0 && setting.self) {
    fail<ConfigError>("{}.rotary_dim = {}: needs {} = \"rotary\"", field, rotary_dim, setting.positions_field);
  } else if (rotary_dim > 0) {
    fail<ConfigError>("{}.rotary_dim = {}: cross-attention has no common places of queries and keys", field,
                      rotary_dim);
  }
  if (setting.positions.relative_clip > 0)
    fail<ConfigError>(
        "{} = \"latent\": positions = \"relative\" add vectors to keys and values, which absorbed decoding never "
        "forms",
        field);
}

int64_t MultiHeadLatent::parameter_count(const AttentionSetting& setting) const {
  const int64_t d = setting.d_model, latent = latent_width(d), query = query_latent_dim;
  const int64_t query_in = query > 0 ? query : d;
  const int64_t norms = latent_norm ? latent + query : 0;
  const int64_t rotary = rotary_dim * (query_in * setting.heads + d);
  const int64_t keys = setting.heads * key_width(setting), values = setting.heads * value_width(setting);
  const int64_t biases = bias ? query + latent + rotary_dim + d : 0;
  return d * query + query_in * keys + latent * (d + keys + values) + values * d + norms + rotary + biases;
}

int64_t MultiHeadLatent::cache_width(int64_t d_model, int64_t) const {
  return latent_width(d_model) + rotary_dim;
}

std::unique_ptr<Attention> MultiHeadLatent::build(const AttentionSetting& setting) const {
  MultiHeadLatentAttentionConfig config{.d_model = setting.d_model,
                                        .heads = setting.heads,
                                        .head_dim = key_width(setting),
                                        .value_dim = value_width(setting),
                                        .latent_dim = latent_width(setting.d_model),
                                        .query_latent_dim = query_latent_dim,
                                        .latent_norm = latent_norm,
                                        .bias = bias,
                                        .rotary_dim = rotary_dim,
                                        .scale = scale,
                                        .dropout = setting.dropout,
                                        .positions = setting.positions};
  config.positions.pattern = pattern;
  return std::make_unique<MultiHeadLatentAttention>(config);
}

std::string MultiHeadLatent::summary(int64_t d_model, int64_t) const {
  std::string text = fmt::format("latent, {} numbers a token", latent_width(d_model));
  if (rotary_dim > 0) text += fmt::format(" and {} with rotary positions", rotary_dim);
  if (query_latent_dim > 0) text += fmt::format(", queries from {}", query_latent_dim);
  if (latent_norm) text += ", norms of latents";
  if (bias) text += ", biases";
  if (head_dim > 0) text += fmt::format(", heads of {}", head_dim);
  if (value_dim > 0) text += fmt::format(", values of {}", value_dim);
  return text;
}

std::string MultiHeadLatent::detail(int64_t d_model, int64_t) const {
  return fmt::format("latent of {}", latent_width(d_model));
}

}  // namespace attune

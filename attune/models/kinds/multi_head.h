#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attune/base/fields.h"
#include "attune/kernels/attention/attention_pattern.h"

namespace [[gnu::visibility("default")]] attune {

class Attention;
struct AttentionSetting;

/// Which projections of an attention have a bias.
enum class AttentionBias { none, all, query_key_value, output };

/// Multi-head attention, Vaswani et al. 2017, section 3.2.2.
struct MultiHead {
  static constexpr const char* kName = "multi_head";
  int64_t kv_heads = 0;  // shared by the query heads: grouped-query attention, Ainslie et al. 2023; 1: multi-query
                         // attention, Shazeer 2019; 0: as many as heads
  int64_t head_dim = 0;  // the width of a head; 0: d_model / heads
  AttentionBias bias = AttentionBias::all;
  bool head_norm = false;       // a norm on each head of queries and keys, Henry et al. 2020
  double soft_cap = 0;          // c > 0: scores s become c tanh(s / c), Gemma Team 2024; 0: none
  double scale = 0;             // of the scores; 0: 1 / sqrt(the width of a head); T5 has 1, Raffel et al. 2020
  bool scale_by_layer = false;  // the scale in layer l, counted from 1, is divided by l, Karamcheti et al. 2021
  AttentionPattern pattern = FullAttention{};
  bool operator==(const MultiHead&) const = default;

  /// The number of key heads of an attention with this many query heads.
  int64_t key_heads(int64_t heads) const { return kv_heads > 0 ? kv_heads : heads; }
  /// The width of a head of a model with this width and this many heads.
  int64_t head_width(int64_t d_model, int64_t heads) const { return head_dim > 0 ? head_dim : d_model / heads; }
  bool has_query_key_value_bias() const;
  bool has_output_bias() const;
  /// The scale of the scores in the layer of the setting.
  double scale_in(const AttentionSetting& setting) const;

  // What every kind of attention has; see AttentionKind.
  void validate(const std::string& field, const AttentionSetting& setting) const;
  int64_t parameter_count(const AttentionSetting& setting) const;
  int64_t cache_width(int64_t d_model, int64_t heads) const;
  std::unique_ptr<Attention> build(const AttentionSetting& setting) const;
  std::string summary(int64_t d_model, int64_t heads) const;
  static constexpr const char* kTitle = "multi-head";
  static constexpr const char* kCrossTitle = "Cross-attention";
  std::string detail(int64_t d_model, int64_t heads) const;
};

template <>
struct EnumNames<AttentionBias> {
  static constexpr std::pair<AttentionBias, const char*> values[] = {
      {AttentionBias::none, "none"},
      {AttentionBias::all, "all"},
      {AttentionBias::query_key_value, "query_key_value"},
      {AttentionBias::output, "output"}};
};

template <class FieldVisitor>
void visit_fields(MultiHead& c, FieldVisitor& v) {
  v("kv_heads", c.kv_heads);
  v("head_dim", c.head_dim);
  v("bias", c.bias);
  v("head_norm", c.head_norm);
  v("soft_cap", c.soft_cap);
  v("scale", c.scale);
  v("scale_by_layer", c.scale_by_layer);
  v("pattern", c.pattern);
}

}  // namespace attune

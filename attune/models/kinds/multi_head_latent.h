#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attune/base/fields.h"
#include "attune/kernels/attention/attention_pattern.h"

namespace [[gnu::visibility("default")]] attune {

class Attention;
struct AttentionSetting;

/// Multi-head latent attention, DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.
struct MultiHeadLatent {
  static constexpr const char* kName = "latent";
  int64_t latent_dim = 0;        // d_c: width of the latent cached for keys and values; 0: d_model / 4
  int64_t query_latent_dim = 0;  // d_c': width of the latent of queries; 0: queries have none
  bool latent_norm = false;      // an RMSNorm on each latent
  bool bias = false;             // of the compressions, the rotary key and the output
  int64_t head_dim = 0;          // d_h: width of a head's queries and keys without the rotary part; 0: d_model / heads
  int64_t value_dim = 0;         // d_h of values; 0: that of the keys
  int64_t rotary_dim = 0;        // d_h^R: width of the decoupled rotary part of queries and keys
  double scale = 0;              // of the scores; 0: 1 / sqrt(head_dim + rotary_dim)
  AttentionPattern pattern = FullAttention{};
  bool operator==(const MultiHeadLatent&) const = default;

  /// The width of a head of keys, and of values, in such a model.
  int64_t key_width(const AttentionSetting& setting) const;
  int64_t value_width(const AttentionSetting& setting) const;
  /// The width of the latent of one token.
  int64_t latent_width(int64_t d_model) const;

  // What every kind of attention has; see AttentionKind.
  void validate(const std::string& field, const AttentionSetting& setting) const;
  int64_t parameter_count(const AttentionSetting& setting) const;
  int64_t cache_width(int64_t d_model, int64_t heads) const;
  std::unique_ptr<Attention> build(const AttentionSetting& setting) const;
  std::string summary(int64_t d_model, int64_t heads) const;
  static constexpr const char* kTitle = "multi-head latent";
  static constexpr const char* kCrossTitle = "Latent cross-attention";
  std::string detail(int64_t d_model, int64_t heads) const;
};

template <class FieldVisitor>
void visit_fields(MultiHeadLatent& c, FieldVisitor& v) {
  v("latent_dim", c.latent_dim);
  v("query_latent_dim", c.query_latent_dim);
  v("latent_norm", c.latent_norm);
  v("bias", c.bias);
  v("head_dim", c.head_dim);
  v("value_dim", c.value_dim);
  v("rotary_dim", c.rotary_dim);
  v("scale", c.scale);
  v("pattern", c.pattern);
}

}  // namespace attune

#include "attune/models/config.h"

#include <limits>
#include <set>

#include "attune/base/check.h"
#include "attune/base/fail.h"

namespace attune {
namespace {

void check_sizes(const TransformerConfig& c) {
  check_range("d_model", c.d_model, 1, 1 << 16);
  check_range("heads", c.heads, 1, c.d_model);
  check_range("layers", c.layers, 1, 1024);
  check_range("d_ff", c.d_ff, 1, 1 << 20);
  if (c.d_model % c.heads != 0) fail<ConfigError>("d_model = {} is not divisible by heads = {}", c.d_model, c.heads);
  check_below_one("dropout", c.dropout);
  check_below_one("attention_dropout", c.attention_dropout);
  check_below_one("activation_dropout", c.activation_dropout);
  if (!(c.norm_epsilon > 0 && c.norm_epsilon < 1))
    fail<ConfigError>("norm_epsilon = {}: needs a number between 0 and 1", c.norm_epsilon);
}

void check_positions(const TransformerConfig& c) {
  if (std::holds_alternative<SinusoidalPositions>(c.positions) && c.d_model % 2 != 0)
    fail<ConfigError>("d_model = {}: positions = \"sinusoidal\" need an even number", c.d_model);
  if (const auto* learned = std::get_if<LearnedPositions>(&c.positions)) {
    check_range("positions.max_length", learned->max_length, 0, 1 << 24);
    if (c.architecture == Architecture::decoder_lm && c.max_positions(*learned) < c.context_length)
      fail<ConfigError>("positions.max_length = {} is below context_length = {}", learned->max_length,
                        c.context_length);
  }
  if (const auto* relative = std::get_if<RelativePositions>(&c.positions))
    check_range("positions.clip", relative->clip, 1, 1 << 12);
  if (const auto* rotary = std::get_if<RotaryOptions>(&c.positions)) {
    try {
      rotary->validate();
    } catch (const ConfigError& error) {
      fail<ConfigError>("positions.{}", error.what());
    }
  }
}

void check_rotary_width(const std::string& field, int64_t width, const RotaryOptions& rotary) {
  if (width % 2 != 0) fail<ConfigError>("{} = {}: positions = \"rotary\" need an even number", field, width);
  if (rotary.dimensions > width)
    fail<ConfigError>("positions.dimensions = {}: {} is {}", rotary.dimensions, field, width);
}

void check_multi_head(const std::string& field, const MultiHead& attention, bool self, const TransformerConfig& c) {
  check_range(field + ".kv_heads", attention.kv_heads, 0, c.heads);
  if (c.heads % kv_heads(attention, c.heads) != 0)
    fail<ConfigError>("{}.kv_heads = {}: heads = {} are not divisible by it", field, attention.kv_heads, c.heads);
  const auto* rotary = std::get_if<RotaryOptions>(&c.positions);
  if (self && rotary != nullptr) check_rotary_width("d_model / heads", c.head_dim(), *rotary);
}

void check_latent(const std::string& field, const MultiHeadLatent& latent, bool self, const TransformerConfig& c) {
  check_range(field + ".latent_dim", latent.latent_dim, 0, 4 * c.d_model);
  check_range(field + ".query_latent_dim", latent.query_latent_dim, 0, 4 * c.d_model);
  check_range(field + ".rotary_dim", latent.rotary_dim, 0, 1 << 12);
  const auto* rotary = std::get_if<RotaryOptions>(&c.positions);
  if (self && rotary != nullptr) {
    if (latent.rotary_dim == 0)
      fail<ConfigError>(
          "{}.rotary_dim = 0: positions = \"rotary\" would turn keys that are to be absorbed; latent attention needs "
          "dimensions of their own for them",
          field);
    check_rotary_width(field + ".rotary_dim", latent.rotary_dim, *rotary);
  } else if (latent.rotary_dim > 0) {
    fail<ConfigError>(
        "{}.rotary_dim = {}: {}", field, latent.rotary_dim,
        self ? "needs positions = \"rotary\"" : "cross-attention has no common places of queries and keys");
  }
  if (self && std::holds_alternative<RelativePositions>(c.positions))
    fail<ConfigError>(
        "{} = \"latent\": positions = \"relative\" add vectors to keys and values, which absorbed decoding never "
        "forms",
        field);
}

void check_attention(const std::string& field, const AttentionKind& kind, bool self, const TransformerConfig& c) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind)) {
    check_latent(field, *latent, self, c);
  } else {
    check_multi_head(field, std::get<MultiHead>(kind), self, c);
  }
  const AttentionPattern& pattern =
      std::visit([](const auto& k) -> const AttentionPattern& { return k.pattern; }, kind);
  check_pattern(field + ".pattern", pattern);
  if (!self && !std::holds_alternative<FullAttention>(pattern))
    fail<ConfigError>("{}.pattern = \"{}\": cross-attention has no common places of queries and keys, needs \"full\"",
                      field, variant_name(pattern));
}

void check_labels(const TransformerConfig& c) {
  check_range("labels: their number", static_cast<int64_t>(c.labels.size()), 2, 1 << 20);
  std::set<std::string> seen;
  for (const std::string& label : c.labels) {
    if (label.empty()) fail<ConfigError>("labels: one is empty");
    if (!seen.insert(label).second) fail<ConfigError>("labels: \"{}\" is there twice", label);
  }
}

void check_sharing(const TransformerConfig& c) {
  if (c.share_embeddings && c.source_vocab != c.target_vocab)
    fail<ConfigError>("share_embeddings = true needs one vocabulary, but source_vocab = {} and target_vocab = {}",
                      c.source_vocab, c.target_vocab);
}

}  // namespace

int64_t latent_dim(const MultiHeadLatent& latent, int64_t d_model) {
  return latent.latent_dim > 0 ? latent.latent_dim : std::max<int64_t>(1, d_model / 4);
}

int64_t kv_heads(const MultiHead& attention, int64_t heads) {
  return attention.kv_heads > 0 ? attention.kv_heads : heads;
}

bool has_query_key_value_bias(const MultiHead& attention) {
  return attention.bias == AttentionBias::all || attention.bias == AttentionBias::query_key_value;
}

bool has_output_bias(const MultiHead& attention) {
  return attention.bias == AttentionBias::all || attention.bias == AttentionBias::output;
}

int64_t TransformerConfig::max_positions(const LearnedPositions& learned) const {
  if (learned.max_length > 0) return learned.max_length;
  return architecture == Architecture::decoder_lm ? context_length : 512;
}

int64_t TransformerConfig::longest_sequence() const {
  const auto* learned = std::get_if<LearnedPositions>(&positions);
  return learned != nullptr ? max_positions(*learned) : std::numeric_limits<int64_t>::max();
}

void TransformerConfig::validate() const {
  constexpr int64_t kMostVocab = int64_t{1} << 24;
  check_sizes(*this);
  if (architecture == Architecture::encoder_decoder) {
    check_range("source_vocab", source_vocab, 1, kMostVocab);
    check_range("target_vocab", target_vocab, 1, kMostVocab);
    check_sharing(*this);
    check_attention("encoder_attention", encoder_attention, true, *this);
    check_attention("decoder_attention", decoder_attention, true, *this);
    check_attention("cross_attention", cross_attention, false, *this);
  } else {
    check_range("vocab", vocab, 1, kMostVocab);
    check_attention("attention", attention, true, *this);
  }
  if (architecture == Architecture::decoder_lm) check_range("context_length", context_length, 1, 1 << 24);
  if (architecture == Architecture::encoder_classifier) check_labels(*this);
  check_positions(*this);
}

}  // namespace attune

#include "attune/models/config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/models/settings.h"

namespace attune {
namespace {

void check_sizes(const TransformerConfig& c) {
  check_range("d_model", c.d_model, 1, 1 << 16);
  check_range("heads", c.heads, 1, c.d_model);
  check_range("layers", c.layers, 1, 1024);
  check_range("d_ff", c.d_ff, 1, 1 << 20);
  check_range("decoder_heads", c.decoder_heads, 0, c.d_model);
  check_range("decoder_layers", c.decoder_layers, 0, 1024);
  check_range("decoder_d_ff", c.decoder_d_ff, 0, 1 << 20);
  if (!(c.logit_scale > 0 && std::isfinite(c.logit_scale)))
    fail<ConfigError>("logit_scale = {}: needs a number above 0", c.logit_scale);
  check_below_one("dropout", c.dropout);
  check_below_one("attention_dropout", c.attention_dropout);
  check_below_one("activation_dropout", c.activation_dropout);
  if (!(c.norm_epsilon > 0 && c.norm_epsilon < 1))
    fail<ConfigError>("norm_epsilon = {}: needs a number between 0 and 1", c.norm_epsilon);
}

void check_feed_forward(const TransformerConfig& c) {
  const TransformerConfig decoder = c.architecture == Architecture::encoder_decoder ? c.of_decoder() : c;
  FeedForwardConfig widest = feed_forward_config(c);
  widest.d_ff = std::max(widest.d_ff, decoder.d_ff);
  validate(c.feed_forward, widest, std::max(c.layers, decoder.layers));
  if (c.share_layers && has_dense_layers(c.feed_forward))
    fail<ConfigError>("share_layers = true: needs layers that are alike, but feed_forward has dense_layers");
}

void check_attention(const std::string& field, const AttentionKind& kind, const AttentionSetting& setting) {
  std::visit([&](const auto& attention) { attention.validate(field, setting); }, kind);
  const AttentionPattern& pattern = pattern_of(kind);
  check_pattern(field + ".pattern", pattern);
  if (!setting.self && !std::holds_alternative<FullAttention>(pattern))
    fail<ConfigError>("{}.pattern = \"{}\": cross-attention has no common places of queries and keys, needs \"full\"",
                      field, variant_name(pattern));
}

void check_layers(const TransformerConfig& c) {
  const auto own = static_cast<int64_t>(c.layer_attention.size());
  if (own != 0 && own != c.layers) fail<ConfigError>("layer_attention: has {} entries, layers = {}", own, c.layers);
  const bool has_local = std::ranges::find(c.layer_attention, LayerAttention::local) != c.layer_attention.end();
  if (has_local) {
    check_range("local_window", c.local_window, 1, 1 << 24);
    if (!std::holds_alternative<RotaryOptions>(c.local_positions) &&
        !std::holds_alternative<NoPositions>(c.local_positions))
      fail<ConfigError>("local_positions = \"{}\": needs \"rotary\" or \"none\"", variant_name(c.local_positions));
    const int64_t first = std::ranges::find(c.layer_attention, LayerAttention::local) - c.layer_attention.begin();
    AttentionSetting local = self_attention_setting(c.of_layer(first));
    local.positions_field = "local_positions";
    check_attention("attention", c.attention, local);  // the positions too
  }
  if (c.share_layers && has_local)
    fail<ConfigError>("share_layers = true: needs layers that are alike, but layer_attention has \"local\"");
  if (c.share_layers && !c.first_norm)
    fail<ConfigError>("share_layers = true: needs layers that are alike, but first_norm is false");
  if (c.norm == NormPlacement::post && !c.first_norm) fail<ConfigError>("first_norm = false: needs norm = \"pre\"");
  if (c.parallel_residual && c.norm == NormPlacement::post)
    fail<ConfigError>("parallel_residual = true: needs norm = \"pre\"");
}

void check_embeddings(const TransformerConfig& c) {
  check_range("embedding_dim", c.embedding_dim, 0, 1 << 16);
  check_range("token_types", c.token_types, 0, 1 << 10);
  if (c.embedding_width() != c.d_model && c.architecture == Architecture::encoder_masked_lm && !c.prediction_transform)
    fail<ConfigError>("embedding_dim = {}: the projection needs prediction_transform = true, d_model is {}",
                      c.embedding_dim, c.d_model);
  if (!(c.logit_soft_cap >= 0 && std::isfinite(c.logit_soft_cap)))
    fail<ConfigError>("logit_soft_cap = {}: needs a positive number, or 0 for none", c.logit_soft_cap);
}

void check_labels(const TransformerConfig& c) {
  const int64_t least = c.label_scores == LabelScores::softmax ? 2 : 1;
  check_range("labels: their number", static_cast<int64_t>(c.labels.size()), least, 1 << 20);
  std::set<std::string> seen;
  for (const std::string& label : c.labels) {
    if (label.empty()) fail<ConfigError>("labels: one is empty");
    if (!seen.insert(label).second) fail<ConfigError>("labels: \"{}\" is there twice", label);
  }
}

void check_layer_sharing(const TransformerConfig& c) {
  const int64_t most = c.share_layers ? c.layers : 1;
  check_range("layer_groups", c.layer_groups, 1, most);
  check_range("layer_block", c.layer_block, 1, most);
  if (c.share_layers && c.layers % (c.layer_groups * c.layer_block) != 0)
    fail<ConfigError>("layer_groups = {} and layer_block = {}: their product has to divide the layers, {}",
                      c.layer_groups, c.layer_block, c.layers);
}

// Throws ConfigError for a value of a field that config.json does not have for this architecture: reading the file back
// would lose it.
void check_fields(const TransformerConfig& c) {
  const auto refuse_unless = [&](bool is_default, const char* field, const auto& value) {
    if (!is_default)
      fail<ConfigError>("{} = {}: architecture = \"{}\" has no such field", field, value, enum_name(c.architecture));
  };
  const bool two_stacks = c.architecture == Architecture::encoder_decoder;
  if (two_stacks || c.architecture == Architecture::decoder_lm)
    refuse_unless(c.token_types == 0, "token_types", c.token_types);
  if (!two_stacks) return;
  refuse_unless(c.embedding_dim == 0, "embedding_dim", c.embedding_dim);
  refuse_unless(c.first_norm, "first_norm", c.first_norm);
  refuse_unless(!c.parallel_residual, "parallel_residual", c.parallel_residual);
  refuse_unless(c.layer_attention.empty(), "layer_attention: the number of its entries", c.layer_attention.size());
}

void check_sharing(const TransformerConfig& c) {
  if (c.share_embeddings && c.source_vocab != c.target_vocab)
    fail<ConfigError>("share_embeddings = true needs one vocabulary, but source_vocab = {} and target_vocab = {}",
                      c.source_vocab, c.target_vocab);
}

}  // namespace

int64_t TransformerConfig::longest_sequence() const {
  return attune::longest_sequence(positions, position_setting(*this));
}

std::vector<std::string> TransformerConfig::default_labels() const {
  return is_regression() ? std::vector<std::string>{"score"} : std::vector<std::string>{"0", "1"};
}

int64_t TransformerConfig::head_dim() const {
  const AttentionKind& kind = architecture == Architecture::encoder_decoder ? encoder_attention : attention;
  return std::visit([&](const auto& k) { return k.head_dim > 0 ? k.head_dim : d_model / heads; }, kind);
}

int64_t TransformerConfig::first_with_parameters_of(int64_t i) const {
  if (!share_layers) return i;
  const int64_t group = layers / layer_groups;
  return i / group * group + i % layer_block;
}

TransformerConfig TransformerConfig::of_layer(int64_t i) const {
  TransformerConfig c = *this;
  const auto at = static_cast<size_t>(i);
  if (at >= layer_attention.size() || layer_attention[at] == LayerAttention::global) return c;
  c.positions = local_positions;
  std::visit([&](auto& kind) { kind.pattern = SlidingWindow{.size = local_window}; }, c.attention);
  return c;
}

TransformerConfig TransformerConfig::of_decoder() const {
  TransformerConfig c = *this;
  if (decoder_heads > 0) c.heads = decoder_heads;
  if (decoder_layers > 0) c.layers = decoder_layers;
  if (decoder_d_ff > 0) c.d_ff = decoder_d_ff;
  return c;
}

void TransformerConfig::validate() const {
  constexpr int64_t kMostVocab = int64_t{1} << 24;
  check_sizes(*this);
  check_fields(*this);
  check_layer_sharing(*this);
  if (architecture == Architecture::encoder_decoder) {
    check_range("source_vocab", source_vocab, 1, kMostVocab);
    check_range("target_vocab", target_vocab, 1, kMostVocab);
    check_sharing(*this);
    check_attention("encoder_attention", encoder_attention, self_attention_setting(*this));
    const TransformerConfig decoder = of_decoder();
    check_layer_sharing(decoder);
    const char* const heads_field = decoder_heads > 0 ? "decoder_heads" : "heads";
    AttentionSetting self = self_attention_setting(decoder), cross = cross_attention_setting(decoder);
    self.heads_field = cross.heads_field = heads_field;
    check_attention("decoder_attention", decoder_attention, self);
    check_attention("cross_attention", cross_attention, cross);
    check_range<int64_t>("alignment_layer", alignment_layer, 0, decoder.layers);
    check_range<int64_t>("alignment_head", alignment_head, 1, decoder.heads);
  } else {
    check_range("vocab", vocab, 1, kMostVocab);
    check_attention("attention", attention, self_attention_setting(*this));
    check_layers(*this);
  }
  check_feed_forward(*this);
  check_embeddings(*this);
  if (architecture == Architecture::decoder_lm) check_range("context_length", context_length, 1, 1 << 24);
  if (architecture == Architecture::encoder_classifier) check_labels(*this);
  attune::validate(positions, position_setting(*this));
}

}  // namespace attune

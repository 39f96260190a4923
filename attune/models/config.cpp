#include "attune/models/config.h"

namespace attune {
namespace {

void check_positive(const char* field, int64_t value, int64_t most) {
  if (value < 1 || value > most) fail<ConfigError>("{} = {}: needs a number from 1 to {}", field, value, most);
}

void check_probability(const char* field, double value) {
  if (!(value >= 0 && value < 1)) fail<ConfigError>("{} = {}: needs a number from 0 to below 1", field, value);
}

void check_latent(const char* field, const AttentionKind& kind, int64_t d_model) {
  const auto* latent = std::get_if<MultiHeadLatent>(&kind);
  if (latent == nullptr) return;
  if (latent->latent_dim < 0 || latent->latent_dim > 4 * d_model)
    fail<ConfigError>("{}.latent_dim = {}: needs a number from 1 to 4 * d_model = {}, or 0 for d_model / 4", field,
                      latent->latent_dim, 4 * d_model);
}

}  // namespace

int64_t latent_dim(const MultiHeadLatent& latent, int64_t d_model) {
  return latent.latent_dim > 0 ? latent.latent_dim : std::max<int64_t>(1, d_model / 4);
}

void TransformerConfig::validate() const {
  constexpr int64_t kMostVocab = int64_t{1} << 24;
  check_positive("source_vocab", source_vocab, kMostVocab);
  check_positive("target_vocab", target_vocab, kMostVocab);
  check_positive("d_model", d_model, 1 << 16);
  check_positive("heads", heads, d_model);
  check_positive("layers", layers, 1024);
  check_positive("d_ff", d_ff, 1 << 20);
  if (d_model % heads != 0) fail<ConfigError>("d_model = {} is not divisible by heads = {}", d_model, heads);
  if (d_model % 2 != 0) fail<ConfigError>("d_model = {}: sinusoidal positions need an even number", d_model);
  check_probability("dropout", dropout);
  check_probability("attention_dropout", attention_dropout);
  check_probability("activation_dropout", activation_dropout);
  if (!(layer_norm_epsilon > 0 && layer_norm_epsilon < 1))
    fail<ConfigError>("layer_norm_epsilon = {}: needs a number between 0 and 1", layer_norm_epsilon);
  check_latent("encoder_attention", encoder_attention, d_model);
  check_latent("decoder_attention", decoder_attention, d_model);
  check_latent("cross_attention", cross_attention, d_model);
  if (share_embeddings && source_vocab != target_vocab)
    fail<ConfigError>("share_embeddings = true needs one vocabulary, but source_vocab = {} and target_vocab = {}",
                      source_vocab, target_vocab);
}

Json write_variant(const AttentionKind& kind) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind))
    return {{"kind", "latent"}, {"latent_dim", latent->latent_dim}};
  return {{"kind", "multi_head"}, {"bias", std::get<MultiHead>(kind).bias}};
}

void read_variant(const Json& value, AttentionKind& kind, const std::string& where) {
  if (value.is_string()) return read_variant(Json{{"kind", value}}, kind, where);
  if (!value.is_object())
    fail<ConfigError>("{}: is {}, needs \"multi_head\", \"latent\" or a table", where, value.dump());
  struct Flat {
    std::string kind;
    MultiHead multi_head;
    MultiHeadLatent latent;
  } flat;
  FieldReader reader(value, where);
  reader("kind", flat.kind);
  if (flat.kind.empty()) flat.kind = std::holds_alternative<MultiHead>(kind) ? "multi_head" : "latent";
  if (flat.kind == "multi_head") {
    reader("bias", flat.multi_head.bias);
    kind = flat.multi_head;
  } else if (flat.kind == "latent") {
    reader("latent_dim", flat.latent.latent_dim);
    kind = flat.latent;
  } else {
    fail<ConfigError>("{}.kind: is \"{}\", needs one of multi_head, latent", where, flat.kind);
  }
  reader.refuse_unknown();
}

}  // namespace attune

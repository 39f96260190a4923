#include "attune/hub/translate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "attune/hub/describe.h"

namespace attune {
namespace {

// More than any model has: a bound before validate() looks.
constexpr int64_t kMostLabels = 1 << 16;

struct NamedActivation {
  std::string_view name;
  FeedForwardActivation plain;
  std::optional<FeedForwardActivation> gated;
};

constexpr std::array<NamedActivation, 12> kActivations = {{
    {"relu", FeedForwardActivation::relu, FeedForwardActivation::reglu},
    {"gelu", FeedForwardActivation::gelu, FeedForwardActivation::geglu},
    {"gelu_python", FeedForwardActivation::gelu, FeedForwardActivation::geglu},
    {"gelu_new", FeedForwardActivation::gelu_tanh, FeedForwardActivation::geglu_tanh},
    {"gelu_fast", FeedForwardActivation::gelu_tanh, FeedForwardActivation::geglu_tanh},
    {"gelu_pytorch_tanh", FeedForwardActivation::gelu_tanh, FeedForwardActivation::geglu_tanh},
    {"gelu_accurate", FeedForwardActivation::gelu_tanh, FeedForwardActivation::geglu_tanh},
    {"gelu_python_tanh", FeedForwardActivation::gelu_tanh, FeedForwardActivation::geglu_tanh},
    {"quick_gelu", FeedForwardActivation::gelu_sigmoid, {}},
    {"silu", FeedForwardActivation::silu, FeedForwardActivation::swiglu},
    {"swish", FeedForwardActivation::silu, FeedForwardActivation::swiglu},
    {"tanh", FeedForwardActivation::tanh, {}},
}};

Json name_of(const std::function<bool(const NamedActivation&)>& wanted) {
  const auto found = std::ranges::find_if(kActivations, wanted);
  return found == kActivations.end() ? Json(nullptr) : Json(found->name);
}

constexpr std::string_view kPartialFactor = RotaryFields{}.partial_field;

// The first files of Phi-3 call longrope "su" or "yarn".
std::string scaling_name(const HubConfig& table) {
  const std::string name = table.text("rope_type", table.text("type", "default"));
  return name == "su" || (name == "yarn" && table.has("short_factor")) ? "longrope" : name;
}

// The length that was trained with. A field beside the table goes before one in it, and so does its default in the
// families that have one, as in transformers.
int64_t original_length(const HubConfig& config, const HubConfig& table, const RotaryFields& fields) {
  constexpr std::string_view kField = "original_max_position_embeddings";
  if (config.has(kField)) return config.integer(kField);
  if (fields.original_length) return *fields.original_length;
  return table.has(kField) ? table.integer(kField) : config.integer("max_position_embeddings");
}

// "factor", or how many times longer than the trained length texts may be.
double factor_of(const HubConfig& config, const HubConfig& table, const RotaryFields& fields) {
  if (table.has("factor")) return table.number("factor");
  const int64_t original = original_length(config, table, fields);
  return static_cast<double>(config.integer("max_position_embeddings")) /
         static_cast<double>(std::max<int64_t>(original, 1));
}

// YaRN's magnitude: "attention_factor", or "mscale" over "mscale_all_dim", or by the paper (0).
double yarn_magnitude(const HubConfig& table, double factor) {
  if (table.has("attention_factor")) return table.number("attention_factor");
  const double scale = table.number("mscale", 0), of_all = table.number("mscale_all_dim", 0);
  if (scale == 0 || of_all == 0) return 0;
  const auto magnitude = [&](double s) { return factor <= 1 ? 1 : 0.1 * s * std::log(factor) + 1; };
  return magnitude(scale) / magnitude(of_all);
}

void set_scaling(RotaryOptions& rotary, const HubConfig& config, const HubConfig& table, const RotaryFields& fields) {
  const std::string name = scaling_name(table);
  const char* const field = table.has("rope_type") ? "rope_type" : "type";
  if (fields.any_length && (name == "dynamic" || name == "longrope"))
    table.refuse(field, "is not supported in this family: the angles depend on the length of the text");
  if (name == "default" || name == "dynamic") return;
  if (name == "linear") {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = table.number("factor");
  } else if (name == "llama3") {
    rotary.scaling = RotaryScaling::llama3;
    rotary.factor = table.number("factor");
    rotary.original_length = original_length(config, table, fields);
    rotary.beta_slow = table.number("low_freq_factor");
    rotary.beta_fast = table.number("high_freq_factor");
  } else if (name == "yarn") {
    rotary.scaling = RotaryScaling::yarn;
    rotary.factor = factor_of(config, table, fields);
    rotary.ramp = table.flag("truncate", true) ? RotaryRamp::pairs : RotaryRamp::exact_pairs;
    rotary.original_length = original_length(config, table, fields);
    rotary.beta_fast = table.number("beta_fast", 32);
    rotary.beta_slow = table.number("beta_slow", 1);
    rotary.magnitude = yarn_magnitude(table, rotary.factor);
  } else if (name == "longrope") {
    rotary.scaling = RotaryScaling::longrope;
    rotary.factor = std::max(1.0, factor_of(config, table, fields));
    rotary.original_length = original_length(config, table, fields);
    rotary.magnitude = table.number("attention_factor", 0);
    rotary.pair_factors = table.numbers("short_factor");
    if (rotary.pair_factors.empty())
      table.refuse("short_factor", "longrope needs the factors of texts of the trained length");
  } else {
    table.refuse(field, "is not supported");
  }
}

// As the text classification of transformers shows logits.
LabelScores label_scores_of(const HubConfig& hub, size_t labels) {
  const std::string type = hub.text("problem_type", "");
  if (type == "regression") return LabelScores::none;
  if (type == "multi_label_classification" || labels == 1) return LabelScores::sigmoid;
  if (!type.empty() && type != "single_label_classification") hub.refuse("problem_type", "is not supported");
  return LabelScores::softmax;
}

}  // namespace

HubConfig rotary_table_of(const HubConfig& config, std::string_view layer_type) {
  const HubConfig older = config.table("rope_scaling"), newer = config.table("rope_parameters");
  if (layer_type.empty()) return older.json().empty() ? newer : older;
  const HubConfig own = newer.table(layer_type);
  if (own.json().empty()) return older;
  Json both = own.json();
  both.update(older.json());
  return {both, own.where()};
}

RotaryOptions rotary_of(const HubConfig& config, const RotaryFields& fields) {
  const HubConfig table = rotary_table_of(config, fields.layer_type);
  RotaryOptions rotary;
  rotary.base = table.number("rope_theta", config.number(fields.base_field, fields.base));
  set_scaling(rotary, config, table, fields);
  if (!fields.partial) return rotary;
  const bool in_table = table.has(kPartialFactor);
  const std::string_view field = in_table ? kPartialFactor : fields.partial_field;
  const HubConfig& holder = in_table ? table : config;
  const double share = holder.number(field, fields.partial_factor);
  if (!(share > 0 && share <= 1)) holder.refuse(field, "needs a number above 0, at most 1");
  if (share < 1) rotary.dimensions = static_cast<int64_t>(static_cast<double>(fields.head_dim) * share);
  if (share < 1 && rotary.dimensions < 2) holder.refuse(field, "rotates nothing of a head");
  if (rotary.dimensions % 2 != 0)
    holder.refuse(field,
                  fmt::format("rotates {} of {} dimensions of a head, which are turned in pairs: needs an even number",
                              rotary.dimensions, fields.head_dim));
  return rotary;
}

void set_rotary(TransformerConfig& c, const HubConfig& config, const RotaryFields& fields) {
  c.positions = rotary_of(config, fields);
  c.context_length = config.integer("max_position_embeddings", fields.context_length);
  limit_context(c);
}

void limit_context(TransformerConfig& c) {
  for (const PositionKind* const positions : {&c.positions, &c.local_positions}) {
    const auto* const rotary = std::get_if<RotaryOptions>(positions);
    if (rotary && rotary->scaling == RotaryScaling::longrope)
      c.context_length = std::min(c.context_length, rotary->original_length);
  }
}

TransformerConfig without_dropout(Architecture architecture) {
  TransformerConfig c;
  c.architecture = architecture;
  c.dropout = c.attention_dropout = c.activation_dropout = 0;
  c.scale_embeddings = false;
  return c;
}

TransformerConfig language_model(const HubFiles& files, std::string_view head) {
  TransformerConfig c = without_dropout(Architecture::decoder_lm);
  files.config.require("is_causal", true);
  c.vocab = files.config.integer("vocab_size");
  c.share_projection = !files.tensors.contains(std::string(head) + ".weight");
  c.projection_bias = false;
  return c;
}

void set_sizes(TransformerConfig& c, const HubConfig& config) {
  c.d_model = config.integer("hidden_size");
  c.heads = config.integer("num_attention_heads");
  c.layers = config.integer("num_hidden_layers");
  c.d_ff = config.integer("intermediate_size");
}

int64_t key_heads_of(const TransformerConfig& c, const HubConfig& config, int64_t fallback) {
  constexpr std::string_view kField = "num_key_value_heads";
  return config.is_null(kField) ? c.heads : config.integer(kField, fallback);
}

int64_t head_dim_of(const TransformerConfig& c, const HubConfig& config) {
  if (c.heads < 1) config.refuse("num_attention_heads", "needs at least 1");
  return config.integer("head_dim", c.d_model / c.heads);
}

TransformerConfig encoder_model(const HubFiles& files) {
  const HubConfig& hub = files.config;
  hub.require("is_causal", false);
  TransformerConfig c = without_dropout(files.architecture);
  c.vocab = hub.integer("vocab_size");
  if (files.architecture != Architecture::encoder_classifier) return c;
  c.labels = hub.texts_by_number("id2label");
  const int64_t unnamed = c.labels.empty() ? std::min<int64_t>(hub.integer("num_labels", 2), kMostLabels) : 0;
  for (int64_t i = 0; i < unnamed; ++i) c.labels.push_back("LABEL_" + std::to_string(i));
  c.label_scores = label_scores_of(hub, c.labels.size());
  return c;
}

void set_masked_lm_head(TransformerConfig& c, const HubFiles& files, std::string_view head, Activation activation) {
  if (files.architecture != Architecture::encoder_masked_lm) return;
  c.prediction_transform = c.transform_norm = true;
  c.transform_activation = activation;
  c.share_projection = !files.tensors.contains(std::string(head) + ".weight");
}

void set_embedding_dim(TransformerConfig& c, int64_t width) {
  c.embedding_dim = width == c.d_model ? 0 : width;
}

void set_layer_attention(TransformerConfig& c, const HubConfig& config,
                         const std::function<bool(int64_t layer)>& is_local) {
  const std::vector<std::string> types = config.texts("layer_types");
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention") config.refuse("layer_types", "is not supported");
    c.layer_attention.push_back(type == "sliding_attention" ? LayerAttention::local : LayerAttention::global);
  }
  for (int64_t i = 0; types.empty() && i < std::min(c.layers, kMostHubLayers); ++i)
    c.layer_attention.push_back(is_local(i) ? LayerAttention::local : LayerAttention::global);
  if (std::ranges::find(c.layer_attention, LayerAttention::local) == c.layer_attention.end())
    return c.layer_attention.clear();
  c.local_positions = c.positions;
  c.local_window = config.integer("sliding_window", 4096);
}

Experts experts_of(const HubConfig& config, int64_t experts) {
  return {.experts = experts,
          .experts_per_token = config.integer("num_experts_per_tok"),
          .d_ff = config.integer("moe_intermediate_size", 0),
          .balance_loss = 0};
}

NameTable expert_rows(const std::string& ours, const std::string& theirs, const std::vector<std::string>& gate_up,
                      const std::string& down) {
  const std::string one = theirs + ".experts.*.", shared = theirs + ".shared_experts.";
  std::vector<std::string> of_one, of_shared;
  for (const std::string& name : gate_up) {
    of_one.push_back(one + name);
    of_shared.push_back(shared + name);
  }
  return {{ours + ".router", {theirs + ".gate"}},
          {ours + ".router.choice_bias", {theirs + ".gate.e_score_correction_bias"}},
          {ours + ".experts.*.linear_1", of_one},
          {ours + ".experts.*.linear_2", {one + down}},
          {ours + ".shared_experts.linear_1", of_shared},
          {ours + ".shared_experts.linear_2", {shared + down}}};
}

Activation head_activation_of(const HubConfig& config, std::string_view field, const std::string& fallback) {
  return fused_activation(activation_of(config, field, fallback));
}

Json activation_name(FeedForwardActivation activation, bool gated) {
  return name_of(
      [&](const NamedActivation& known) { return gated ? known.gated == activation : known.plain == activation; });
}

Json activation_name(Activation activation) {
  return name_of([&](const NamedActivation& known) { return fused_activation(known.plain) == activation; });
}

FeedForwardActivation activation_of(const HubConfig& config, std::string_view field, const std::string& fallback,
                                    bool gated) {
  const std::string name = config.text(field, fallback);
  for (const NamedActivation& known : kActivations)
    if (known.name == name && (!gated || known.gated)) return gated ? *known.gated : known.plain;
  config.refuse(field, "is not supported");
}

std::string first_stored(const HubFiles& files, const std::vector<std::string>& tensors) {
  const auto found =
      std::ranges::find_if(tensors, [&](const std::string& name) { return files.tensors.contains(name); });
  return found == tensors.end() ? tensors.front() : *found;
}

std::string projection_bias_name(const TransformerConfig& c, const HubFiles& files, const std::string& own,
                                 const std::string& shared) {
  return first_stored(files, c.share_projection ? std::vector{shared, own} : std::vector{own, shared});
}

Transform part_of_rows(int64_t first, bool transposed) {
  return {.transposed = transposed, .part = true, .first = first};
}

}  // namespace attune

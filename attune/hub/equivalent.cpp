#include "attune/hub/equivalent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <variant>

#include "attune/base/json_fields.h"
#include "attune/models/build.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// Zero where the scale is the default, 1 / sqrt(width).
double scale_in_full(double scale, int64_t width) {
  const double of_width = 1 / std::sqrt(static_cast<double>(width));
  return std::abs(scale - of_width) <= 1e-12 * of_width ? 0 : scale;
}

void fill(MultiHead& kind, int64_t d_model, int64_t heads) {
  kind.kv_heads = kind.key_heads(heads);
  kind.head_dim = kind.head_width(d_model, heads);
  kind.scale = scale_in_full(kind.scale, kind.head_dim);
}

void fill(MultiHeadLatent& kind, int64_t d_model, int64_t heads) {
  kind.latent_dim = kind.latent_width(d_model);
  if (kind.head_dim == 0) kind.head_dim = d_model / heads;
  if (kind.value_dim == 0) kind.value_dim = kind.head_dim;
  kind.scale = scale_in_full(kind.scale, kind.head_dim + kind.rotary_dim);
}

void fill(AttentionKind& kind, int64_t d_model, int64_t heads) {
  std::visit([&](auto& k) { fill(k, d_model, heads); }, kind);
}

// Fields that a scaling does not read get their defaults.
void fill(RotaryOptions& rotary, int64_t head_dim) {
  if (rotary.dimensions == head_dim) rotary.dimensions = 0;
  RotaryOptions read{.base = rotary.base, .pairing = rotary.pairing, .dimensions = rotary.dimensions};
  read.scaling = rotary.scaling;
  if (rotary.scaling != RotaryScaling::none) read.factor = rotary.factor;
  const bool yarn = rotary.scaling == RotaryScaling::yarn, longrope = rotary.scaling == RotaryScaling::longrope;
  if (yarn || longrope || rotary.scaling == RotaryScaling::llama3) read.original_length = rotary.original_length;
  if (yarn || rotary.scaling == RotaryScaling::llama3) {
    read.beta_fast = rotary.beta_fast;
    read.beta_slow = rotary.beta_slow;
  }
  if (yarn) read.ramp = rotary.ramp;
  if (yarn && rotary.magnitude != 0.1 * std::log(rotary.factor) + 1) read.magnitude = rotary.magnitude;
  if (longrope) {
    read.magnitude = rotary.magnitude;
    read.pair_factors = rotary.pair_factors;
  }
  rotary = read;
}

// The width of what is rotated in a head.
int64_t rotary_width(const TransformerConfig& c) {
  const auto* const latent = std::get_if<MultiHeadLatent>(&c.attention);
  return latent ? latent->rotary_dim : c.head_dim();
}

void fill(PositionKind& kind, const TransformerConfig& c) {
  if (auto* const learned = std::get_if<LearnedPositions>(&kind)) {
    learned->max_length = longest_sequence(
        kind,
        {.d_model = c.d_model, .context_length = c.architecture == Architecture::decoder_lm ? c.context_length : 0});
  } else if (auto* const rotary = std::get_if<RotaryOptions>(&kind)) {
    fill(*rotary, rotary_width(c));
  }
}

void fill(TransformerConfig& c, Experts& experts) {
  std::ranges::sort(experts.dense_layers);
  // Clang 14 does not compile std::ranges::unique().
  experts.dense_layers.erase(std::unique(experts.dense_layers.begin(), experts.dense_layers.end()),
                             experts.dense_layers.end());
  if (experts.d_ff == 0) experts.d_ff = c.d_ff;
  if (experts.dense_layers.empty()) c.d_ff = experts.d_ff;  // no layer is dense, so that nothing reads d_ff
  if (experts.groups == 1) experts.group_score = GroupScore::maximum;
  experts.balance_loss = experts.bias_rate = 0;
}

// The fields that only some models read.
void fill_unread(TransformerConfig& c) {
  const TransformerConfig defaults;
  c.dropout = c.attention_dropout = c.activation_dropout = 0;
  c.initialization = defaults.initialization;
  c.embedding_initialization = defaults.embedding_initialization;
  c.alignment_layer = defaults.alignment_layer;
  c.alignment_head = defaults.alignment_head;
  if (c.norm_form == NormForm::rms) c.norm_bias = true;
  if (c.norm == NormPlacement::post) c.final_norm = true;
  const bool transforms = c.architecture == Architecture::encoder_classifier ? c.pooler : c.prediction_transform;
  if (!transforms) {
    c.transform_activation = defaults.transform_activation;
    c.transform_bias = defaults.transform_bias;
    c.transform_norm = defaults.transform_norm;
  }
  if (std::ranges::find(c.layer_attention, LayerAttention::local) != c.layer_attention.end()) return;
  c.layer_attention.clear();
  c.local_window = defaults.local_window;
  c.local_positions = defaults.local_positions;
}

bool are_near(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return x == y || std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y));
}

void compare(const Json& ours, const Json& theirs, const std::string& field, std::vector<FieldDifference>& found) {
  const auto kind = [](const Json& json) { return json.is_object() ? json.value("kind", Json()) : Json(); };
  if (!ours.is_object() || !theirs.is_object() || kind(ours) != kind(theirs)) {
    if (!are_near(ours, theirs)) found.push_back({field, ours, theirs});
    return;
  }
  for (const auto& [name, value] : ours.items())
    compare(value, theirs.value(name, Json()), field.empty() ? name : field + "." + name, found);
}

std::string_view last_of(std::string_view field) {
  return field.substr(field.rfind('.') + 1);
}

// Whether every projection with a bias in `few` has one in `more`.
bool has_biases_of(const Json& few, const Json& more) {
  if (few.is_boolean()) return !few.get<bool>();
  return few == "none" || more == "all";
}

// The new order of the rows of one head, of which `width` are rotated: row i comes from row order[i].
std::vector<int64_t> row_order(int64_t rows, int64_t width, RotaryPairing ours) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    int64_t from = i;
    if (i < width)
      from = ours == RotaryPairing::interleaved ? 2 * (i % (width / 2)) + i / (width / 2) : i / 2 + i % 2 * (width / 2);
    order[static_cast<size_t>(i)] = from;
  }
  return order;
}

// Parameters of queries and keys, with the rows of each head in another order.
struct Reordering {
  std::vector<int64_t> order;

  static bool concerns(const std::string& name) {
    constexpr std::array kParts = {".w_q.", ".w_k.", ".query_norm.", ".key_norm."};
    return name.find(".self_attention.") != std::string::npos &&
           std::ranges::any_of(kParts, [&](const char* part) { return name.find(part) != std::string::npos; });
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor result = Tensor::empty_like(x);
    const auto head = static_cast<int64_t>(order.size());
    for (int64_t first = 0; first < x.size(0); first += head)
      for (int64_t i = 0; i < head; ++i) {
        const int64_t from = first + order[static_cast<size_t>(i)];
        result.rows(first + i, first + i + 1).copy_from(x.rows(from, from + 1));
      }
    return result;
  }
};

}  // namespace

TransformerConfig full_form(const TransformerConfig& config) {
  TransformerConfig c = config;
  fill_unread(c);
  if (auto* const experts = std::get_if<Experts>(&c.feed_forward)) fill(c, *experts);
  if (c.architecture == Architecture::encoder_decoder) {
    const TransformerConfig decoder = c.of_decoder();
    c.decoder_heads = decoder.heads;
    c.decoder_layers = decoder.layers;
    c.decoder_d_ff = decoder.d_ff;
    fill(c.encoder_attention, c.d_model, c.heads);
    for (AttentionKind* kind : {&c.decoder_attention, &c.cross_attention}) fill(*kind, c.d_model, c.decoder_heads);
  } else {
    fill(c.attention, c.d_model, c.heads);
    fill(c.local_positions, c);
  }
  fill(c.positions, c);
  return c;
}

std::vector<FieldDifference> differences(const TransformerConfig& ours, const TransformerConfig& theirs) {
  std::vector<FieldDifference> found;
  compare(write_fields(full_form(ours)), write_fields(full_form(theirs)), "", found);
  return found;
}

bool can_be_bridged(const FieldDifference& difference, const TransformerConfig& ours) {
  static const std::set<std::string_view> kFlags = {"feed_forward_bias", "norm_bias", "transform_bias",
                                                    "projection_bias"};
  const auto& [field, own, other] = difference;
  if (kFlags.contains(field)) return !own.get<bool>();
  if (field == "token_types") return own == 0;
  if (field == "feed_forward.choice_bias") return !own.get<bool>();
  if (last_of(field) == "bias") return has_biases_of(own, other);
  return field == "positions.pairing" && ours.layer_attention.empty() &&
         std::holds_alternative<MultiHead>(ours.attention);
}

std::unique_ptr<Module> equivalent_model(Module& model, const TransformerConfig& ours,
                                         const TransformerConfig& theirs) {
  std::unique_ptr<Module> result = build_without_values(theirs);
  std::map<std::string, Tensor> own;
  for (const NamedParameter& p : named_parameters(model)) own[p.name] = *p.tensor;
  const auto* const own_rotary = std::get_if<RotaryOptions>(&ours.positions);
  const auto* const rotary = std::get_if<RotaryOptions>(&theirs.positions);
  Reordering reordered;
  if (own_rotary && rotary && own_rotary->pairing != rotary->pairing)
    reordered.order =
        row_order(ours.head_dim(), rotary->dimensions > 0 ? rotary->dimensions : ours.head_dim(), own_rotary->pairing);
  replace_parameters(*result, [&](const NamedParameter& p) {
    const auto found = own.find(p.name);
    if (found == own.end()) return Tensor::zeros(p.tensor->shape());
    return !reordered.order.empty() && Reordering::concerns(p.name) ? reordered(found->second) : found->second;
  });
  return result;
}

}  // namespace attune

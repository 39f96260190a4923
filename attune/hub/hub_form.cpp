#include "attune/hub/hub_form.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/hub/equivalent.h"
#include "attune/hub/families.h"

namespace attune {
namespace {

// The tensors that a model's folder will have.
class PlannedTensors final : public TensorNames {
 public:
  PlannedTensors() = default;
  PlannedTensors(const std::vector<std::string>& parameters, const NameTable& table) {
    for (const std::string& parameter : parameters) {
      const std::optional<Place> place = place_of(parameter, table);  // none: the configurations differ there
      if (place) names_.insert(place->theirs.begin(), place->theirs.end());
    }
  }
  bool contains(const std::string& name) const override { return names_.contains(name); }

 private:
  std::set<std::string> names_;
};

// A class as an answer, or why it is none.
struct Candidate {
  std::optional<HubForm> form;
  bool is_bridged = false;                    // its parameters are not the model's own
  std::vector<FieldDifference> missing = {};  // differences that cannot be bridged
  std::string refusal = "";                   // of describe() or translate()
};

void put_labels(Json& json, const TransformerConfig& c) {
  Json names = Json::object(), numbers = Json::object();
  for (size_t i = 0; i < c.labels.size(); ++i) {
    names[std::to_string(i)] = c.labels[i];
    numbers[c.labels[i]] = i;
  }
  json.update({{"id2label", names}, {"label2id", numbers}});
  json["problem_type"] = c.label_scores == LabelScores::none      ? "regression"
                         : c.label_scores == LabelScores::sigmoid ? "multi_label_classification"
                                                                  : "single_label_classification";
}

// What all families have in common. A family's own fields hold.
Json with_common_fields(const Json& own, const TransformerConfig& c, const HubClass& hub_class,
                        const SpecialIds& special) {
  const auto id = [](int32_t token) { return token < 0 ? Json(nullptr) : Json(token); };
  const bool encoder_decoder = c.architecture == Architecture::encoder_decoder;
  Json json = {{"model_type", hub_class.model_type},
               {"architectures", {hub_class.name}},
               {"vocab_size", encoder_decoder ? c.source_vocab : c.vocab},
               {"tie_word_embeddings", c.share_projection},
               {"pad_token_id", id(special.pad)},
               {"bos_token_id", id(special.bos)},
               {"eos_token_id", id(special.eos)}};
  if (encoder_decoder)
    json.update(
        {{"is_encoder_decoder", true}, {"forced_eos_token_id", nullptr}});  // the default of some classes is a token
  if (c.architecture == Architecture::encoder_classifier) put_labels(json, c);
  json.update(own);
  return json;
}

// As transformers writes a class that is the base model itself: without its name.
NameTable without_prefix(NameTable table, const std::string& prefix) {
  for (NameRow& row : table)
    for (std::string& name : row.theirs)
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return table;
}

Candidate candidate_of(const Family& family, const HubClass& hub_class, const TransformerConfig& config,
                       const std::vector<std::string>& parameters, const SpecialIds& special) {
  Candidate candidate;
  try {
    const TransformerConfig full = full_form(config);
    const DescribedModel described{.config = full, .model_type = hub_class.model_type, .pad = special.pad};
    Json json = with_common_fields(family.describe(described), full, hub_class, special);
    const HubConfig hub(json, "config.json");
    const auto files_with = [&](const TensorNames& tensors) {
      return HubFiles{
          .config = hub, .tensors = tensors, .architecture = hub_class.architecture, .class_name = hub_class.name};
    };
    const PlannedTensors none;
    const PlannedTensors planned(parameters, family.names(full, files_with(none)));
    TransformerConfig model = family.translate(files_with(planned));
    model.validate();
    for (FieldDifference& difference : differences(config, model)) {
      candidate.is_bridged = true;
      if (!can_be_bridged(difference, config)) candidate.missing.push_back(std::move(difference));
    }
    if (!candidate.missing.empty()) return candidate;
    NameTable names = family.names(model, files_with(planned));
    if (hub_class.architecture == Architecture::encoder) names = without_prefix(std::move(names), family.prefix);
    candidate.form = {&family, hub_class, std::move(json), std::move(model), std::move(names)};
  } catch (const ConfigError& error) {
    candidate.refusal = error.what();
  }
  return candidate;
}

// For people: the fields without an equivalent.
std::string reason_of(const Candidate& candidate) {
  if (!candidate.refusal.empty()) return candidate.refusal;
  constexpr size_t kMostShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(candidate.missing.size(), kMostShown); ++i) {
    const auto& [field, ours, theirs] = candidate.missing[i];
    const auto shown = [](const Json& value) {
      return cut_text(show(value.is_object() && value.contains("kind") ? value["kind"] : value), 80);
    };
    text += (i > 0 ? "; " : "") + field + " = " + shown(ours) + ", needs " + shown(theirs);
  }
  const size_t further = candidate.missing.size() - std::min(candidate.missing.size(), kMostShown);
  return further > 0 ? text + "; and " + std::to_string(further) + " more" : text;
}

// Candidates with fewer differences come first.
size_t distance_of(const Candidate& candidate) {
  return candidate.refusal.empty() ? candidate.missing.size() : SIZE_MAX;
}

}  // namespace

std::string written_model_types() {
  std::set<std::string_view> types;
  for (const Family& family : all_families())
    for (const HubClass& c : family.classes)
      if (!c.model_type.empty()) types.insert(c.model_type);
  std::string text;
  for (const std::string_view type : types) text += (text.empty() ? "" : ", ") + std::string(type);
  return text;
}

SpecialIds special_ids_of(const HubConfig& config, SpecialIds otherwise) {
  const auto set = [&](int32_t& id, const char* field) {
    if (config.has(field) && config.json().at(field) == -1) return;  // the folders of the first LLaMA have no pad
    const std::vector<int64_t> ids = config.integers(field);
    if (!ids.empty()) id = static_cast<int32_t>(ids.front());
  };
  set(otherwise.pad, "pad_token_id");
  set(otherwise.bos, "bos_token_id");
  set(otherwise.eos, "eos_token_id");
  return otherwise;
}

HubForm hub_form_of(const TransformerConfig& config, const std::vector<std::string>& parameters,
                    const SpecialIds& special, const std::string& model_type) {
  std::optional<HubForm> bridged;
  std::optional<Candidate> nearest;
  std::string_view nearest_type;
  bool is_known = model_type.empty();
  for (const Family& family : all_families()) {
    for (const HubClass& c : family.classes) {
      if (c.model_type.empty() || (!model_type.empty() && c.model_type != model_type)) continue;
      is_known = true;
      if (c.architecture != config.architecture) continue;
      Candidate candidate = candidate_of(family, c, config, parameters, special);
      if (candidate.form && !candidate.is_bridged) return std::move(*candidate.form);
      if (candidate.form && !bridged) bridged = std::move(candidate.form);
      if (!nearest || distance_of(candidate) < distance_of(*nearest)) {
        nearest = std::move(candidate);
        nearest_type = c.model_type;
      }
    }
  }
  if (bridged) return std::move(*bridged);
  if (!is_known) fail<ConfigError>("family = \"{}\": is not known, needs one of {}", model_type, written_model_types());
  if (!nearest)
    fail<ConfigError>("architecture = \"{}\": family \"{}\" has no such class", enum_name(config.architecture),
                      model_type);
  fail<ConfigError>("has no equivalent on the hub; the nearest is {}: {}", nearest_type, reason_of(*nearest));
}

}  // namespace attune

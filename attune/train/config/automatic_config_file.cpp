// The configuration that is chosen for a text, under the assignments.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/io/toml_config.h"
#include "attune/train/config/automatic_config.h"
#include "attune/train/config/config_origins.h"

namespace attune {
namespace {

// Whether there is a key "section.name".
bool has_key(const Json& sections, const std::string& key) {
  const Json::json_pointer place("/" + key.substr(0, key.find('.')) + "/" + key.substr(key.find('.') + 1));
  return sections.contains(place);
}

// `said`: what the preset and the assignments say beside the text.
void refuse_contradictions(const Json& text, const Json& said) {
  for (const auto& [key, value] : text.at("data").items())
    if (has_key(said, "data." + key))
      fail<ConfigError>("data.{} is said twice: the text is {} already", key, show(value));
  if (has_key(said, "data.prepared"))
    fail<ConfigError>(
        "data.prepared cannot be used when the configuration is chosen from a text; write a configuration file that "
        "names it");
  if (has_key(said, "train.initialize_from"))
    fail<ConfigError>(
        "train.initialize_from has a model of its own, for which nothing is chosen from the text: needs a "
        "configuration, see docs/fine-tuning.md");
}

// The architecture that preset and assignments ask for, where it reads such a text.
Architecture architecture_for(const Json& text, const Json& said, bool has_preset) {
  const Architecture of_text = defaults_of(text).model.architecture;
  if (!has_preset && !has_key(said, "model.architecture")) return of_text;
  const Architecture asked_for = defaults_of(said).model.architecture;
  const bool reads =
      of_text == asked_for || (of_text == Architecture::decoder_lm && asked_for == Architecture::encoder_masked_lm);
  if (!reads)
    fail<ConfigError>("model.architecture = \"{}\" does not read such a text, which is for \"{}\"",
                      enum_name(asked_for), enum_name(of_text));
  return asked_for;
}

// Adds what the preset and the assignments say; the rest is chosen to go with it.
void add_said(const Json& sections, const RunConfig& said, TextMeasures& measures) {
  const DataConfig& data = said.data;
  if (said.has_validation()) {
    measures.validates = true;
  } else if (has_key(sections, "data.valid_fraction")) {
    measures.validates = false;
  }
  if (has_key(sections, "data.tokenizer_type")) measures.tokenizer_type = data.tokenizer_type;
  // What is out of range is refused with the whole configuration.
  const auto is_usable = [](int64_t n, int64_t most = int64_t{1} << 20) { return n > 0 && n <= most; };
  if (has_key(sections, "model.d_model") && is_usable(said.model.d_model)) measures.d_model = said.model.d_model;
  if (has_key(sections, "train.steps") && is_usable(said.train.steps)) measures.steps = said.train.steps;
  if (is_usable(said.train.epochs)) measures.epochs = said.train.epochs;
  if (has_key(sections, "train.batch_tokens") && is_usable(said.train.batch_tokens, int64_t{1} << 26))
    measures.batch_tokens = said.train.batch_tokens;
  if (is_usable(said.train.accumulate)) measures.accumulate = said.train.accumulate;
  if (is_usable(said.train.average_checkpoints)) measures.average_checkpoints = said.train.average_checkpoints;
  if (has_key(sections, "schedule.kind")) measures.schedule = said.schedule.kind;
  if (said.schedule.learning_rate > 0) measures.learning_rate = said.schedule.learning_rate;
  measures.has_tokenizer = !data.tokenizer.empty() || !data.source_tokenizer.empty() || !data.target_tokenizer.empty();
  measures.joint_vocab = data.has_one_tokenizer();
}

TextMeasures measures_of(const Json& sections) {
  const RunConfig said = read_keys(sections);
  TextMeasures measures = measure_text(said);
  add_said(sections, said, measures);
  return measures;
}

// A preset's warm-up is for the number of steps of its publication. Returns one for this number of steps; nothing if
// the preset's is short enough, or the user has `assigned` one.
std::optional<Choice> shorter_warmup(const RunConfig& said, const Json& assigned, int64_t steps) {
  const int64_t most = std::max<int64_t>(steps / 10, 1);
  if (has_key(assigned, "schedule.warmup_steps") || said.schedule.warmup_steps <= most) return std::nullopt;
  return Choice{
      .key = "schedule.warmup_steps",
      .value = most,
      .why = fmt::format("a tenth of the steps; the preset has {}, for a longer run", said.schedule.warmup_steps)};
}

}  // namespace

AutomaticConfig read_automatic_config(const Json& text, const std::vector<std::string>& overrides,
                                      std::string_view preset) {
  std::vector<Origin> origins = origins_of("", overrides, preset);
  const Json said = joined(origins);
  refuse_contradictions(text, said);
  Json of_text = text;
  of_text["model"]["architecture"] = enum_name(architecture_for(text, said, !preset.empty()));
  Json all = of_text;
  put_sections(all, said);
  AutomaticConfig result;
  Json chosen = Json::object();
  for (Choice& choice : choose_config(measures_of(all))) {
    const size_t dot = choice.key.find('.');
    const std::string section = choice.key.substr(0, dot);
    if (has_key(said, choice.key) || (!preset.empty() && section != "data" && section != "train")) continue;
    chosen[section][choice.key.substr(dot + 1)] = choice.value;
    if (!choice.why.empty()) result.choices.push_back(std::move(choice));
  }
  put_sections(chosen, of_text);
  origins.insert(origins.begin(), {"chosen from the text", [chosen](Json& json) { put_sections(json, chosen); }});
  if (const Json::json_pointer steps("/train/steps"); !preset.empty() && chosen.contains(steps))
    if (auto warmup = shorter_warmup(read_keys(all), joined(origins_of("", overrides, "")), chosen[steps])) {
      constexpr int kBehindPreset = 2;
      origins.insert(origins.begin() + kBehindPreset, {"chosen from the text", [steps = warmup->value](Json& json) {
                                                         json["schedule"]["warmup_steps"] = steps;
                                                       }});
      result.choices.push_back(std::move(*warmup));
    }
  result.config = read_origins(std::move(origins), read_usable_sections);
  return result;
}

}  // namespace attune

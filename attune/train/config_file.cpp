// The configuration of a run as TOML.

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/io/toml_config.h"
#include "attune/models/presets.h"
#include "attune/train/config_fields.h"

namespace attune {
namespace {

// Sections one by one, so that errors read "run.toml: model.d_model: ...".
class SectionReader {
 public:
  SectionReader(const Json& json, const std::string& where) : json_(json), where_(where) {}

  template <class Section>
  void operator()(const char* name, Section& section) {
    names_.emplace_back(name);
    if (const auto found = json_.find(name); found != json_.end()) read_fields(*found, section, where_ + name);
  }

  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names_.begin(), names_.end(), key) != names_.end()) continue;
      const std::string near = nearest_name(key, names_);
      fail<ConfigError>("{}unknown section [{}]{}", where_, key, near.empty() ? "" : ", did you mean [" + near + "]?");
    }
  }

 private:
  const Json& json_;
  const std::string& where_;
  std::vector<std::string> names_;
};

// The keys of a preset, section by section.
Json sections_of(const Preset& preset) {
  Json sections = Json::parse(preset.training);
  sections["model"] = Json::parse(preset.model);
  return sections;
}

// Keys of `upper` in place of those of `lower`, section by section; a value is replaced as a whole.
Json merged(Json lower, const Json& upper) {
  for (const auto& [section, keys] : upper.items()) {
    Json& below = lower[section];
    if (!below.is_object() || !keys.is_object()) {
      below = keys;
      continue;
    }
    for (const auto& [key, value] : keys.items()) below[key] = value;
  }
  return lower;
}

// The defaults of the architecture that [model] asks for.
RunConfig defaults_of(const Json& json, const std::string& where) {
  RunConfig asked_for;
  if (const auto model = json.find("model");
      model != json.end() && model->is_object() && model->contains("architecture"))
    read_fields(Json{{"architecture", model->at("architecture")}}, asked_for.model, where + "model");
  return default_config(asked_for.model.architecture);
}

// All that a variant may be, as TOML.
template <class V, size_t... index>
std::vector<std::string> alternatives(std::index_sequence<index...>) {
  const auto text = [](V value) {
    Json json = Json::object();
    FieldWriter writer(json);
    writer("value", value);
    return write_toml_value(json.at("value"));
  };
  return {text(V(std::in_place_index<index>))...};
}

class Describer {
 public:
  explicit Describer(Architecture architecture) : architecture_(architecture) {}

  template <class Field>
  void operator()(const char* name, Field& field) {
    if (!has_field(architecture_, section_.empty() ? name : section_ + "." + name)) return;
    if constexpr (NamedEnum<Field>) {
      std::vector<std::string> known;
      for (const auto& [value, text] : EnumNames<Field>::values) known.emplace_back(text);
      line(name, enum_name(field), fmt::format("{}", fmt::join(known, ", ")));
    } else if constexpr (NamedVariant<Field>) {
      Json json = Json::object();
      FieldWriter writer(json);
      writer(name, field);
      auto others = alternatives<Field>(std::make_index_sequence<std::variant_size_v<Field>>());
      others.erase(others.begin() + static_cast<int64_t>(field.index()));
      line(name, json.at(name), fmt::format("or {}", fmt::join(others, ", ")));
    } else if constexpr (requires(Describer & v) { visit_fields(field, v); }) {
      text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
      section_ = name;
      visit_fields(field, *this);
      section_.clear();
    } else {
      line(name, field, "");
    }
  }
  const std::string& text() const { return text_; }

 private:
  void line(const char* name, const Json& value, const std::string& comment) {
    text_ += fmt::format("{} = {}{}{}\n", name, write_toml_value(value), comment.empty() ? "" : "  # ", comment);
  }
  Architecture architecture_;
  std::string section_;
  std::string text_;
};

}  // namespace

RunConfig read_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                          std::string_view preset) {
  Json json = preset.empty() ? Json::object() : sections_of(find_preset(preset));
  if (!path.empty()) json = merged(std::move(json), read_toml(path));
  for (const std::string& assignment : overrides) apply_override(json, assignment);
  const std::string where = path.empty() ? "" : path.string() + ": ";
  RunConfig config = defaults_of(json, where);
  SectionReader reader(json, where);
  visit_fields(config, reader);
  reader.refuse_unknown();
  try {
    config.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}{}", where, error.what());
  }
  return config;
}

std::string write_toml(const RunConfig& config) {
  return write_toml(own_fields(config));
}

std::string describe_config(const RunConfig& config) {
  RunConfig copy = config;  // visit_fields takes a mutable reference
  Describer describer(config.model.architecture);
  visit_fields(copy, describer);
  return describer.text();
}

}  // namespace attune

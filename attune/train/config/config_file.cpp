// The configuration of a run as TOML.

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/io/toml_config.h"
#include "attune/models/presets.h"
#include "attune/tensor/device_error.h"
#include "attune/train/config/config_fields.h"
#include "attune/train/config/config_origins.h"
#include "attune/train/initial_model.h"

namespace attune {
namespace {

// Sections one by one, so that errors read "model.d_model: ...".
class SectionReader {
 public:
  explicit SectionReader(const Json& json) : json_(json) {}

  template <class Section>
  void operator()(const char* name, Section& section) {
    names_.emplace_back(name);
    if (const auto found = json_.find(name); found != json_.end()) read_fields(*found, section, name);
  }

  // The first key that is no section.
  std::optional<std::string> unknown() const {
    for (const auto& [key, value] : json_.items())
      if (std::find(names_.begin(), names_.end(), key) == names_.end()) return key;
    return std::nullopt;
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  const Json& json_;
  std::vector<std::string> names_;
};

// The keys of a preset, section by section.
Json sections_of(const Preset& preset) {
  Json sections = Json::parse(preset.training);
  sections["model"] = Json::parse(preset.model);
  return sections;
}

// Keys that people know from other programs.
constexpr std::pair<const char*, const char*> kKeysOfOtherPrograms[] = {
    {"lr", "the key is schedule.learning_rate"},
    {"batch_size", "batches are counted in tokens: the key is train.batch_tokens"},
    {"fp16", "the key is train.precision"},
    {"bf16", "the key is train.precision"},
};

// Every key of a run of this architecture, section by section, also those that only others use.
const Json& keys_of(Architecture architecture) {
  static const auto all = [] {
    std::map<Architecture, Json> keys;
    for (const auto& [one, name] : EnumNames<Architecture>::values) keys[one] = write_fields(default_config(one));
    return keys;
  }();
  return all.at(architecture);
}

// Where a key belongs that is in the wrong section, as advice; "": nowhere.
std::string place_of(const std::string& key, const RunConfig& config) {
  for (const auto& [name, advice] : kKeysOfOtherPrograms)
    if (key == name) return advice;
  std::vector<std::string> places;
  const Json own = own_fields(config);
  for (const auto& [section, keys] : own.items())
    if (keys.contains(key)) places.push_back(section + "." + key);
  return places.empty() ? "" : fmt::format("the key is {}", fmt::join(places, " or "));
}

// The architectures that have a key of [model].
std::vector<std::string> owners_of(const std::string& key) {
  std::vector<std::string> owners;
  for (const auto& [architecture, name] : EnumNames<Architecture>::values)
    if (keys_of(architecture).at("model").contains(key)) owners.emplace_back(name);
  return owners;
}

// Throws for the first unknown key where more can be said of it than its own section knows: the right place, or the
// architectures that have it.
void refuse_misplaced(const Json& json, const RunConfig& defaults) {
  const Json& known = keys_of(defaults.model.architecture);
  for (const auto& [section, keys] : json.items()) {
    if (!keys.is_object() || !known.contains(section)) continue;
    for (const auto& [key, value] : keys.items()) {
      if (known.at(section).contains(key)) continue;
      if (const std::string place = place_of(key, defaults); !place.empty())
        fail<ConfigError>("{}: unknown key \"{}\": {}", section, key, place);
      const std::vector<std::string> owners = owners_of(key);
      if (section != "model" || owners.empty()) return;
      throw ForeignKey(section, key,
                       fmt::format("architecture = \"{}\" does not have it, but {}",
                                   enum_name(defaults.model.architecture), fmt::join(owners, ", ")));
    }
  }
}

// Throws for a section that there is not, naming the one that was meant, or the place of a key of that name.
void refuse_unknown_section(const SectionReader& reader, const RunConfig& config) {
  const std::optional<std::string> key = reader.unknown();
  if (!key) return;
  if (const std::string place = place_of(*key, config); !place.empty())
    fail<ConfigError>("unknown section [{}]: {}", *key, place);
  const std::string near = nearest_name(*key, reader.names());
  fail<ConfigError>("unknown section [{}]{}", *key, near.empty() ? "" : ", did you mean [" + near + "]?");
}

RunConfig read_sections(const Json& json) {
  RunConfig config = read_keys(json);
  config.validate();
  return config;
}

// The keys that the model of train.initialize_from gives, which count least. None where the configuration has every key
// of [model], as that of a run does.
std::optional<Origin> initial_origin(const Json& json) {
  const auto at = [](const Json& table, const char* key) {
    const auto found = table.is_object() ? table.find(key) : table.end();
    return table.is_object() && found != table.end() ? *found : Json();
  };
  const Json name = at(at(json, "train"), "initialize_from"), model = at(json, "model");
  if (!name.is_string() || name.get_ref<const std::string&>().empty()) return std::nullopt;
  RunConfig asked_for = defaults_of(json);
  if (model.size() == write_fields(asked_for.model).size()) return std::nullopt;
  const InitialModel initial(name.get<std::string>());
  const bool is_said = model.contains("architecture");
  return Origin{fmt::format("train.initialize_from = {}", name.dump()),
                [keys = initial.sections(is_said ? asked_for.model.architecture : initial.architecture())](Json& all) {
                  put_sections(all, keys);
                }};
}

// The origin with which an error first appears, as the beginning of a message: "run.toml: "; "": the defaults.
std::string blamed(const std::vector<Origin>& origins, std::string_view message, Read read) {
  Json json = Json::object();
  for (const Origin& origin : origins) {
    origin.add_to(json);
    try {
      read(json);
    } catch (const Error& error) {
      if (error.what() == message) return origin.name + ": ";
    }
  }
  return "";
}

// The last origin that has the key, or nothing.
const Origin* last_with(const std::vector<Origin>& origins, const std::string& section, const std::string& key) {
  const Origin* last = nullptr;
  for (const Origin& origin : origins) {
    Json json = Json::object();
    origin.add_to(json);
    if (json.contains(Json::json_pointer() / section / key)) last = &origin;
  }
  return last;
}

// The message with the origin of the key, and with that of the architecture, if that is another one.
std::string explained(const std::vector<Origin>& origins, const ForeignKey& error) {
  const Origin* const of_key = last_with(origins, error.section(), error.key());
  const Origin* const of_architecture = last_with(origins, "model", "architecture");
  std::string text = of_key != nullptr ? of_key->name + ": " + error.what() : error.what();
  if (of_architecture != nullptr && of_architecture != of_key)
    text += fmt::format(" (the architecture comes from {})", of_architecture->name);
  return text;
}

}  // namespace

RunConfig defaults_of(const Json& json) {
  RunConfig asked_for;
  if (const auto model = json.find("model");
      model != json.end() && model->is_object() && model->contains("architecture"))
    read_fields(Json{{"architecture", model->at("architecture")}}, asked_for.model, "model");
  return default_config(asked_for.model.architecture);
}

RunConfig read_keys(const Json& json) {
  RunConfig config = defaults_of(json);
  refuse_misplaced(json, config);
  SectionReader reader(json);
  visit_fields(config, reader);
  refuse_unknown_section(reader, config);
  return config;
}

std::vector<Origin> origins_of(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                               std::string_view preset) {
  std::vector<Origin> origins;
  if (!preset.empty())
    origins.push_back({fmt::format("preset {}", preset),
                       [keys = sections_of(find_preset(preset))](Json& json) { put_sections(json, keys); }});
  if (!path.empty())
    origins.push_back({path.string(), [keys = read_toml(path)](Json& json) { put_sections(json, keys); }});
  for (const std::string& assignment : in_order_of_depth(overrides))
    origins.push_back({"--set " + assignment, [=](Json& json) { apply_override(json, assignment); }});
  return origins;
}

RunConfig read_usable_sections(const Json& json) {
  RunConfig config = read_sections(json);
  check_usable_device(config);
  return config;
}

Json joined(const std::vector<Origin>& origins) {
  Json json = Json::object();
  for (const Origin& origin : origins) origin.add_to(json);
  return json;
}

RunConfig read_origins(std::vector<Origin> origins, Read read) {
  Json json = joined(origins);
  if (std::optional<Origin> initial = initial_origin(json)) {
    origins.insert(origins.begin(), std::move(*initial));
    json = joined(origins);
  }
  try {
    return read(json);
  } catch (const ForeignKey& error) {
    fail<ConfigError>("{}", explained(origins, error));
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}{}", blamed(origins, error.what(), read), error.what());
  } catch (const DeviceError& error) {
    fail<DeviceError>("{}{}", blamed(origins, error.what(), read), error.what());
  }
}

RunConfig read_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                          std::string_view preset) {
  return read_origins(origins_of(path, overrides, preset), read_sections);
}

RunConfig read_training_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                               std::string_view preset) {
  return read_origins(origins_of(path, overrides, preset), read_usable_sections);
}

std::string write_toml(const RunConfig& config) {
  return write_toml(own_fields(config));
}

}  // namespace attune

#include "attune/train/config/config_description.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "attune/base/json_fields.h"
#include "attune/io/toml_config.h"
#include "attune/models/presets.h"
#include "attune/train/config.h"
#include "attune/train/config/config_fields.h"
#include "attune/train/config/config_help.h"

namespace attune {
namespace {

// A key as it is described.
struct Key {
  std::string section, name;
  Json value;
  std::vector<std::string> choices = {};  // of an enumeration or a variant
};

// The fields of one kind: "latent" with latent_dim and so on.
struct Kind {
  std::string name;
  std::vector<Key> fields;
  bool operator==(const Kind& other) const { return name == other.name; }
};

// Lists the keys of a configuration, and the kinds that its variants may have.
class KeyList {
 public:
  explicit KeyList(Architecture architecture) : architecture_(architecture) {}

  template <class Field>
  void operator()(const char* name, Field& field) {
    if constexpr (NamedEnum<Field>) {
      Key& key = add(name, enum_name(field));
      for (const auto& [value, text] : EnumNames<Field>::values) key.choices.emplace_back(text);
    } else if constexpr (NamedVariant<Field>) {
      Json json = Json::object();
      FieldWriter writer(json);
      writer(name, field);
      Key& key = add(name, json.at(name));
      key.choices.assign(std::begin(VariantNames<Field>::values), std::end(VariantNames<Field>::values));
      add_kinds<Field>(std::make_index_sequence<std::variant_size_v<Field>>());
    } else if constexpr (EnumList<Field>) {
      Json json = Json::object();
      FieldWriter writer(json);
      writer(name, field);
      Key& key = add(name, json.at(name));
      for (const auto& [value, text] : EnumNames<typename Field::value_type>::values) key.choices.emplace_back(text);
    } else if constexpr (requires(KeyList & v) { visit_fields(field, v); }) {
      if (!has_field(architecture_, name)) return;
      section_ = name;
      visit_fields(field, *this);
    } else {
      add(name, field);
    }
    if (!keys.empty() && !has_field(architecture_, section_ + "." + keys.back().name)) keys.pop_back();
  }

  std::vector<Key> keys;
  std::vector<Kind> kinds;  // each once

 private:
  Key& add(const char* name, Json value) {
    keys.push_back({.section = section_, .name = name, .value = std::move(value)});
    return keys.back();
  }

  template <class V, size_t... index>
  void add_kinds(std::index_sequence<index...>) {
    const auto add_kind = [&](auto alternative, const char* name) {
      KeyList list(architecture_);
      list.section_ = name;
      visit_fields(alternative, list);
      const Kind kind{name, list.keys};
      if (!kind.fields.empty() && std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
      for (const Kind& inner : list.kinds)
        if (std::ranges::find(kinds, inner) == kinds.end()) kinds.push_back(inner);
    };
    (add_kind(std::variant_alternative_t<index, V>{}, VariantNames<V>::values[index]), ...);
  }

  Architecture architecture_;
  std::string section_;
};

KeyList list_of(const RunConfig& config) {
  RunConfig copy = config;  // visit_fields takes a mutable reference
  KeyList list(config.model.architecture);
  visit_fields(copy, list);
  return list;
}

const KeyHelp& help_of(const Key& key) {
  return attune::help_of(key.section.c_str(), key.name.c_str());
}

std::string sentence(const Key& key) {
  const KeyHelp& help = help_of(key);
  std::string text = help.meaning;
  if (*help.unit != '\0') text += fmt::format(" ({})", help.unit);
  if (!key.choices.empty()) text += fmt::format(". One of {}", fmt::join(key.choices, ", "));
  return text;
}

// In the table of a page a bar would end the cell.
std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string rows_of(const std::vector<Key>& keys, const std::map<std::string, std::string>& notes = {}) {
  std::string text = "| key | meaning | unit | default |\n| --- | --- | --- | --- |\n";
  for (const Key& key : keys) {
    std::string meaning = help_of(key).meaning;
    if (!key.choices.empty()) meaning += fmt::format(". One of `{}`", fmt::join(key.choices, "`, `"));
    if (const auto note = notes.find(key.section + "." + key.name); note != notes.end())
      meaning += fmt::format(" ({})", note->second);
    text += fmt::format("| `{}` | {} | {} | `{}` |\n", key.name, cell(meaning), help_of(key).unit,
                        write_toml_value(key.value));
  }
  return text;
}

// All keys of all architectures, in the order of their sections, and which architectures have a key that others lack.
struct AllKeys {
  std::vector<Key> keys;
  std::vector<Kind> kinds;
  std::map<std::string, std::string> owners;
};

AllKeys all_keys() {
  AllKeys all;
  std::map<std::string, std::vector<std::string>> owners;
  for (const auto& [architecture, name] : EnumNames<Architecture>::values) {
    KeyList list = list_of(default_config(architecture));
    for (const Key& key : list.keys) {
      std::vector<std::string>& of_key = owners[key.section + "." + key.name];
      of_key.emplace_back(name);
      if (of_key.size() == 1) all.keys.push_back(key);
    }
    if (all.kinds.empty()) all.kinds = std::move(list.kinds);
  }
  const auto place = [](const Key& key) {
    const auto help = key_help();
    return std::ranges::find_if(help, [&](const KeyHelp& h) { return h.key == key.section + "." + key.name; }) -
           help.begin();
  };
  std::ranges::stable_sort(all.keys, {}, place);
  for (const auto& [key, names] : owners)
    if (names.size() < std::size(EnumNames<Architecture>::values))
      all.owners[key] = fmt::format("{} alone", fmt::join(names, ", "));
  return all;
}

std::string presets_text() {
  std::string text = "| preset | what it is | what differs from the publication |\n| --- | --- | --- |\n";
  for (const Preset& preset : presets())
    text += fmt::format("| `{}` | {} | {} |\n", preset.name, cell(preset.description), cell(preset.differs));
  return text;
}

}  // namespace

std::string describe_config(const RunConfig& config) {
  const KeyList list = list_of(config), defaults = list_of(default_config(config.model.architecture));
  std::string text = "# Each key: its meaning (unit), its choices [default].\n", section;
  for (size_t i = 0; i < list.keys.size(); ++i) {
    const Key& key = list.keys[i];
    if (key.section != section) text += fmt::format("\n[{}]\n", key.section);
    section = key.section;
    text += fmt::format("# {} [{}]\n{} = {}\n", sentence(key), write_toml_value(defaults.keys[i].value), key.name,
                        write_toml_value(key.value));
  }
  text += "\n# A choice with fields is a table, as in {kind = \"latent\", latent_dim = 64}. The fields:\n";
  for (const Kind& kind : list.kinds)
    for (const Key& key : kind.fields)
      text += fmt::format("#   {}.{}: {} [{}]\n", kind.name, key.name, sentence(key), write_toml_value(key.value));
  return text;
}

std::string configuration_page() {
  const AllKeys all = all_keys();
  std::string text =
      "# Configuration\n\n"
      "Every key of a run's configuration. `attune train --reference-page` writes this page; a test compares them.\n\n"
      "The file is TOML with a section for each part. `--set section.key=value` overrides one key, in any order; a\n"
      "preset stands below the file, the file below `--set`. `attune train --describe-config` prints the keys of one\n"
      "architecture as the other options set them. `model.architecture` says which keys there are; where only some\n"
      "architectures have a key, they stand in brackets. Paths are taken from the current directory; the run's own\n"
      "`config.toml` has them absolute.\n";
  std::string section;
  std::vector<Key> keys;
  const auto end_section = [&] {
    if (!keys.empty()) text += fmt::format("\n## [{}]\n\n{}", section, rows_of(keys, all.owners));
    keys.clear();
  };
  for (const Key& key : all.keys) {
    if (key.section != section) end_section();
    section = key.section;
    keys.push_back(key);
  }
  end_section();
  text +=
      "\n## Kinds\n\n"
      "A choice with fields is a table, `{kind = \"latent\", latent_dim = 64}`; its name alone, `\"latent\"`, has all\n"
      "defaults. A table without `kind` changes fields of the kind that is there. Kinds that are not listed have no\n"
      "fields.\n";
  for (const Kind& kind : all.kinds) text += fmt::format("\n### {}\n\n{}", kind.name, rows_of(kind.fields));
  text += "\n## Presets\n\n" + presets_text();
  return text;
}

}  // namespace attune

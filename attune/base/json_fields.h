#pragma once
// Reads and writes configuration structs as JSON, by the list of their fields (see fields.h).

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/base/json.h"

namespace attune {

class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) {}
  template <class T>
  void operator()(const char* name, T& field) {
    json_[name] = to_json_value(field);
  }

 private:
  template <class T>
  static Json to_json_value(T& field) {
    if constexpr (NamedEnum<T>) {
      return enum_name(field);
    } else if constexpr (NamedVariant<T>) {
      Json object = {{"kind", variant_name(field)}};
      FieldWriter writer(object);
      std::visit([&](auto& alternative) { visit_fields(alternative, writer); }, field);
      return object.size() == 1 ? object["kind"] : object;
    } else if constexpr (EnumList<T>) {
      Json list = Json::array();
      for (const auto value : field) list.push_back(enum_name(value));
      return list;
    } else if constexpr (requires(FieldWriter & v) { visit_fields(field, v); }) {
      Json object = Json::object();
      FieldWriter writer(object);
      visit_fields(field, writer);
      return object;
    } else {
      return field;
    }
  }
  Json& json_;
};

/// Reads the fields that the JSON has and leaves the others as they are. Every error begins with `where`, such as
/// "config.toml: model". An error about a field continues with `join` and the name of the field; `join` is ": " if
/// `where` is the name of a file.
class FieldReader {
 public:
  FieldReader(const Json& json, std::string where, std::string join = ".")
      : json_(json), where_(std::move(where)), join_(std::move(join)) {
    if (!json_.is_object()) fail<ConfigError>("{}: needs a table of keys, found {}", where_, json_.type_name());
  }

  template <class T>
  void operator()(const char* name, T& field) {
    names_.emplace_back(name);
    if constexpr (NamedVariant<T>)
      for (const char* kind : VariantNames<T>::values) kinds_.emplace_back(kind, name);
    if (const auto found = json_.find(name); found != json_.end()) read(*found, field, where_ + join_ + name);
  }

  /// Throws ConfigError for a key that is not a field. The message suggests the field that has a kind of this name, or
  /// the field with the nearest name.
  void refuse_unknown() const;

 private:
  template <class T>
  static void read(const Json& value, T& field, const std::string& where) {
    if constexpr (NamedEnum<T>) {
      read_enum(value, field, where);
    } else if constexpr (NamedVariant<T>) {
      read_variant(value, field, where);
    } else if constexpr (EnumList<T>) {
      if (!value.is_array()) fail<ConfigError>("{}: is {}, needs a list", where, cut_text(show(value), 80));
      field.assign(value.size(), {});
      for (size_t i = 0; i < value.size(); ++i) read_enum(value[i], field[i], where + "[" + std::to_string(i) + "]");
    } else if constexpr (requires(FieldReader & v) { visit_fields(field, v); }) {
      FieldReader reader(value, where);
      visit_fields(field, reader);
      reader.refuse_unknown();
    } else {
      read_plain(value, field, where);
    }
  }

  template <class E>
  static void read_enum(const Json& value, E& field, const std::string& where) {
    std::string known;
    for (const auto& [candidate, name] : EnumNames<E>::values) {
      if (value.is_string() && value.get<std::string>() == name) {
        field = candidate;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail<ConfigError>("{}: is {}, needs one of {}", where, cut_text(show(value), 80), known);
  }

  // A new kind starts from the defaults of its fields.
  template <class V>
  static void read_variant(const Json& value, V& field, const std::string& where) {
    constexpr auto kIndices = std::make_index_sequence<std::variant_size_v<V>>();
    if (value.is_string()) return set_variant(value.get<std::string>(), field, where, kIndices);
    FieldReader reader(value, where);
    std::string kind = variant_name(field);
    reader("kind", kind);
    set_variant(kind, field, where + ".kind", kIndices);
    std::visit([&](auto& alternative) { visit_fields(alternative, reader); }, field);
    reader.refuse_unknown();
  }

  template <class V, size_t... index>
  static void set_variant(const std::string& kind, V& field, const std::string& where, std::index_sequence<index...>) {
    if (kind == variant_name(field)) return;
    std::string known;
    for (const char* name : VariantNames<V>::values) known += (known.empty() ? "" : ", ") + std::string(name);
    const bool found = ((kind == VariantNames<V>::values[index] && (field.template emplace<index>(), true)) || ...);
    if (!found) fail<ConfigError>("{}: is \"{}\", needs one of {}", where, kind, known);
  }

  static void read_plain(const Json& value, bool& field, const std::string& where);
  static void read_plain(const Json& value, int64_t& field, const std::string& where);
  static void read_plain(const Json& value, uint64_t& field, const std::string& where);
  static void read_plain(const Json& value, double& field, const std::string& where);
  static void read_plain(const Json& value, std::string& field, const std::string& where);
  static void read_plain(const Json& value, std::vector<std::string>& field, const std::string& where);
  // A list of numbers, or of lists of whole numbers.
  template <class T>
  static void read_plain(const Json& value, std::vector<T>& field, const std::string& where);

  const Json& json_;
  std::string where_, join_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, std::string>> kinds_;  // the kinds of fields with alternatives, and the fields
};

template <class Config>
Json write_fields(const Config& config) {
  Json json = Json::object();
  FieldWriter writer(json);
  Config copy = config;  // visit_fields takes a mutable reference, so that one list serves reading and writing
  visit_fields(copy, writer);
  return json;
}

template <class Config>
void read_fields(const Json& json, Config& config, const std::string& where) {
  FieldReader reader(json, where);
  visit_fields(config, reader);
  reader.refuse_unknown();
}

}  // namespace attune

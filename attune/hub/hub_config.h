#pragma once
// config.json of a Hugging Face folder, read field by field. Fields that nobody asks for are not looked at.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/json.h"

namespace attune {

/// An object of config.json. A field that is null counts as missing. Every function throws ConfigError that names file,
/// field and value: for a field of another type, and, without `fallback`, for a missing one.
class HubConfig {
 public:
  /// `where` begins every error. Throws ConfigError unless `json` is an object.
  HubConfig(Json json, std::string where);

  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }
  bool has(std::string_view field) const;
  bool has_text(std::string_view field) const;
  /// For the fields whose null does not mean their default.
  bool is_null(std::string_view field) const;
  /// From 0 to 2^31 - 1, so that sums and products of two do not overflow.
  int64_t integer(std::string_view field, std::optional<int64_t> fallback = {}) const;
  double number(std::string_view field, std::optional<double> fallback = {}) const;  // finite
  bool flag(std::string_view field, std::optional<bool> fallback = {}) const;
  std::string text(std::string_view field, std::optional<std::string> fallback = {}) const;
  /// A list of strings; empty if it is missing.
  std::vector<std::string> texts(std::string_view field) const;
  /// One integer or a list of integers; empty if it is missing.
  std::vector<int64_t> integers(std::string_view field) const;
  /// A list of lists of integers; empty if it is missing.
  std::vector<std::vector<int64_t>> integer_lists(std::string_view field) const;
  /// A list of numbers; empty if it is missing.
  std::vector<double> numbers(std::string_view field) const;
  /// An object; without fields if it is missing.
  HubConfig table(std::string_view field) const;
  /// The values of an object of strings with the keys "0", "1", ...; empty if it is missing.
  std::vector<std::string> texts_by_number(std::string_view field) const;

  /// "config.json: FIELD = VALUE: REASON"
  [[noreturn]] void refuse(std::string_view field, std::string_view reason) const;
  /// Refuses a field that is there with another value.
  template <class T>
  void require(std::string_view field, const T& value) const {
    if (has(field) && *find(field) != Json(value)) refuse(field, "is not supported, needs " + show(Json(value)));
  }

 private:
  /// The integers of `value`, which is one or a list of them. `field` is for errors.
  std::vector<int64_t> integers_of(const Json& value, std::string_view field) const;
  const Json* find(std::string_view field) const;  // null if it is missing or null
  const Json& get(std::string_view field) const;

  Json json_;
  std::string where_;
};

}  // namespace attune

#include "attune/hub/hub_config.h"

#include <cmath>
#include <limits>

#include "attune/base/cut_text.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

// Nothing unless the value is a whole number from 0 to 2^31 - 1.
std::optional<int64_t> integer_of(const Json& value) {
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= std::numeric_limits<int32_t>::max() && number == std::floor(number))) return {};
  return static_cast<int64_t>(number);
}

}  // namespace

HubConfig::HubConfig(Json json, std::string where) : json_(std::move(json)), where_(std::move(where)) {
  if (!json_.is_object()) fail<ConfigError>("{}: needs an object, found {}", where_, json_.type_name());
}

const Json* HubConfig::find(std::string_view field) const {
  const auto found = json_.find(field);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool HubConfig::has(std::string_view field) const {
  return find(field) != nullptr;
}

bool HubConfig::has_text(std::string_view field) const {
  return has(field) && find(field)->is_string();
}

bool HubConfig::is_null(std::string_view field) const {
  const auto found = json_.find(field);
  return found != json_.end() && found->is_null();
}

const Json& HubConfig::get(std::string_view field) const {
  const Json* found = find(field);
  if (found == nullptr) fail<ConfigError>("{}: needs \"{}\"", where_, field);
  return *found;
}

void HubConfig::refuse(std::string_view field, std::string_view reason) const {
  const Json* found = find(field);
  fail<ConfigError>("{}: {} = {}: {}", where_, field, found ? cut_text(show(*found), 80) : "null", reason);
}

int64_t HubConfig::integer(std::string_view field, std::optional<int64_t> fallback) const {
  if (fallback && !has(field)) return *fallback;
  const std::optional<int64_t> value = integer_of(get(field));
  if (!value) refuse(field, "needs an integer from 0 to 2147483647");
  return *value;
}

double HubConfig::number(std::string_view field, std::optional<double> fallback) const {
  if (fallback && !has(field)) return *fallback;
  const Json& value = get(field);
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(field, "needs a number");
  return value.get<double>();
}

bool HubConfig::flag(std::string_view field, std::optional<bool> fallback) const {
  if (fallback && !has(field)) return *fallback;
  const Json& value = get(field);
  if (!value.is_boolean()) refuse(field, "needs true or false");
  return value.get<bool>();
}

std::string HubConfig::text(std::string_view field, std::optional<std::string> fallback) const {
  if (fallback && !has(field)) return *fallback;
  const Json& value = get(field);
  if (!value.is_string()) refuse(field, "needs a text");
  return value.get<std::string>();
}

std::vector<std::string> HubConfig::texts(std::string_view field) const {
  std::vector<std::string> values;
  const Json* list = find(field);
  if (list == nullptr) return values;
  if (!list->is_array()) refuse(field, "needs a list of texts");
  for (const Json& value : *list) {
    if (!value.is_string()) refuse(field, "needs a list of texts");
    values.push_back(value.get<std::string>());
  }
  return values;
}

std::vector<int64_t> HubConfig::integers_of(const Json& value, std::string_view field) const {
  std::vector<int64_t> values;
  const auto add = [&](const Json& one) {
    const std::optional<int64_t> number = integer_of(one);
    if (!number) refuse(field, "needs integers from 0 to 2147483647");
    values.push_back(*number);
  };
  if (value.is_array()) {
    for (const Json& one : value) add(one);
  } else {
    add(value);
  }
  return values;
}

std::vector<int64_t> HubConfig::integers(std::string_view field) const {
  const Json* list = find(field);
  return list == nullptr ? std::vector<int64_t>() : integers_of(*list, field);
}

std::vector<std::vector<int64_t>> HubConfig::integer_lists(std::string_view field) const {
  std::vector<std::vector<int64_t>> values;
  const Json* list = find(field);
  if (list == nullptr) return values;
  if (!list->is_array()) refuse(field, "needs a list of lists of integers");
  for (const Json& value : *list) {
    if (!value.is_array()) refuse(field, "needs a list of lists of integers");
    values.push_back(integers_of(value, field));
  }
  return values;
}

std::vector<double> HubConfig::numbers(std::string_view field) const {
  std::vector<double> values;
  const Json* list = find(field);
  if (list == nullptr) return values;
  if (!list->is_array()) refuse(field, "needs a list of numbers");
  for (const Json& value : *list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(field, "needs a list of numbers");
    values.push_back(value.get<double>());
  }
  return values;
}

HubConfig HubConfig::table(std::string_view field) const {
  const Json* object = find(field);
  return {object ? *object : Json::object(), where_ + "." + std::string(field)};
}

std::vector<std::string> HubConfig::texts_by_number(std::string_view field) const {
  std::vector<std::string> values;
  const Json* object = find(field);
  if (object == nullptr) return values;
  if (!object->is_object()) refuse(field, "needs an object");
  for (size_t i = 0; i < object->size(); ++i) {
    const auto found = object->find(std::to_string(i));
    if (found == object->end() || !found->is_string())
      fail<ConfigError>("{}.{}: needs a text for \"{}\"", where_, field, i);
    values.push_back(found->get<std::string>());
  }
  return values;
}

}  // namespace attune

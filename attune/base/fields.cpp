#include "attune/base/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"

namespace attune {

namespace {

// Levenshtein distance, one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// What the elements of a list are called.
std::string_view elements_of(const std::vector<int64_t>&) {
  return "whole numbers";
}
std::string_view elements_of(const std::vector<double>&) {
  return "numbers";
}
std::string_view elements_of(const std::vector<std::vector<int64_t>>&) {
  return "lists of whole numbers";
}

[[noreturn]] void wrong_type(const Json& value, const std::string& where, std::string_view wanted) {
  fail<ConfigError>("{}: is {}, needs {}", where, cut_text(show(value), 80), wanted);
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  word = word.substr(0, 64);
  std::string best;
  size_t best_distance = std::max(std::min<size_t>(2, word.size() / 2), word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || word.size() < 3) return best;
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(word); };
  const auto first = std::ranges::find_if(candidates, begins);
  return first == candidates.end() ? best : *first;
}

void FieldReader::refuse_unknown() const {
  for (const auto& [key, value] : json_.items()) {
    if (std::find(names_.begin(), names_.end(), key) != names_.end()) continue;
    for (const auto& [kind, field] : kinds_)
      if (key == kind) fail<ConfigError>("{}: unknown key \"{}\", did you mean {} = \"{}\"?", where_, key, field, kind);
    const std::string near = nearest_name(key, names_);
    if (near.empty()) fail<ConfigError>("{}: unknown key \"{}\"", where_, key);
    fail<ConfigError>("{}: unknown key \"{}\", did you mean \"{}\"?", where_, key, near);
  }
}

void FieldReader::read_plain(const Json& value, bool& field, const std::string& where) {
  if (!value.is_boolean()) wrong_type(value, where, "true or false");
  field = value.get<bool>();
}

void FieldReader::read_plain(const Json& value, int64_t& field, const std::string& where) {
  if (!value.is_number_integer()) wrong_type(value, where, "a whole number");
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    wrong_type(value, where, "a whole number below 2^63");
  field = value.get<int64_t>();
}

void FieldReader::read_plain(const Json& value, uint64_t& field, const std::string& where) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0))
    wrong_type(value, where, "a whole number that is not negative");
  field = value.get<uint64_t>();
}

void FieldReader::read_plain(const Json& value, double& field, const std::string& where) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) wrong_type(value, where, "a number");
  field = value.get<double>();
}

void FieldReader::read_plain(const Json& value, std::string& field, const std::string& where) {
  if (!value.is_string()) wrong_type(value, where, "a string");
  field = value.get<std::string>();
}

void FieldReader::read_plain(const Json& value, std::vector<std::string>& field, const std::string& where) {
  if (value.is_string()) {
    field = {value.get<std::string>()};
    return;
  }
  if (!value.is_array()) wrong_type(value, where, "a string or a list of strings");
  field.clear();
  for (const Json& element : value) {
    if (!element.is_string()) wrong_type(element, where, "strings only");
    field.push_back(element.get<std::string>());
  }
}

template <class T>
void FieldReader::read_plain(const Json& value, std::vector<T>& field, const std::string& where) {
  if (!value.is_array()) wrong_type(value, where, fmt::format("a list of {}", elements_of(field)));
  field.clear();
  for (const Json& element : value) read_plain(element, field.emplace_back(), where);
}
template void FieldReader::read_plain(const Json&, std::vector<int64_t>&, const std::string&);
template void FieldReader::read_plain(const Json&, std::vector<double>&, const std::string&);
template void FieldReader::read_plain(const Json&, std::vector<std::vector<int64_t>>&, const std::string&);

}  // namespace attune

#include "attune/io/toml_config.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <cmath>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/gguf.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxKeys = 4096;  // an ordered object looks keys up one by one

// toml++ frees nested tables by recursion and puts no limit on a.b.c.d..., so that a long key would exhaust the stack.
// This pass over the text counts dots between two delimiters and open brackets, outside of strings and comments.
class NestingCheck {
 public:
  NestingCheck(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        if (!skip_string(c)) return;  // unterminated: toml++ stops there too
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '[' || c == '{') ++depth_;
      if ((c == ']' || c == '}') && depth_ > 0) --depth_;
      if (c == '.') ++dots_;
      if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots_ = 0;
      if (depth_ > kMaxDepth || dots_ > kMaxDepth)
        fail<FileError>("{}: values are nested more than {} levels deep at byte {}", where_, kMaxDepth, at_);
      ++at_;
    }
  }

 private:
  bool skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = text_.substr(at_).starts_with(triple);
    const std::string_view end = multi_line ? std::string_view(triple) : std::string_view(triple).substr(0, 1);
    for (at_ += end.size(); at_ < text_.size(); ++at_) {
      if (text_.substr(at_).starts_with(end)) {
        at_ += end.size();
        while (multi_line && at_ < text_.size() && text_[at_] == quote) ++at_;  // """" ends a string with a quote in it
        return true;
      }
      if (!multi_line && text_[at_] == '\n') return false;
      if (quote == '"' && text_[at_] == '\\') ++at_;
    }
    return false;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
  int depth_ = 0;
  int dots_ = 0;
};

Json to_json(const toml::node& node, const std::string& where) {
  if (const auto* table = node.as_table()) {
    if (table->size() > kMaxKeys)
      fail<FileError>("{}: has {} keys, at most {} are accepted", where, table->size(), kMaxKeys);
    Json object = Json::object();
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      object[name] = to_json(value, where + (where.ends_with(':') ? " " : ".") + name);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& value : *array) list.push_back(to_json(value, where));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get())) fail<FileError>("{}: needs a finite number", where);
    return number->get();
  }
  fail<FileError>("{}: is a date or a time, which no key takes; a string needs quotes", where);
}

// One line: toml++ quotes the offending text as it is.
std::string one_line(std::string_view text) {
  std::string line = cut_text(text, 300);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return line;
}

struct Assignment {
  std::vector<std::string> path;
  std::string value;
};

Assignment split(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) fail<ConfigError>("--set {}: needs key=value", assignment);
  Assignment result{{""}, assignment.substr(equals + 1)};
  for (const char c : assignment.substr(0, equals)) {
    if (c == '.') {
      result.path.emplace_back();
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
      result.path.back() += c;
    } else {
      fail<ConfigError>("--set {}: a key has letters, digits, \"_\", \"-\" and dots only", assignment);
    }
  }
  for (const std::string& part : result.path)
    if (part.empty()) fail<ConfigError>("--set {}: a part of the key is empty", assignment);
  if (result.path.size() > kMaxDepth)
    fail<ConfigError>("--set {}: the key has more than {} parts", assignment, kMaxDepth);
  return result;
}

// The value as TOML, or as the string it is when it is none.
Json parse_value(const std::string& text) {
  try {
    const Json table = parse_toml("value = " + text, "value");
    if (table.size() == 1) return table.at("value");
  } catch (const FileError&) {
  }
  return text;
}

// The name of a kind stands for the table with that kind and the defaults of its fields, see NamedVariant.
void name_to_table(Json& value) {
  if (value.is_string()) value = Json{{"kind", value}};
}

void put_value(Json& place, const Json& value) {
  if (!value.is_object() || value.contains("kind")) {
    place = value;
    return;
  }
  name_to_table(place);
  if (!place.is_object()) place = Json::object();
  for (const auto& [key, below] : value.items()) put_value(place[key], below);
}

// A section is no choice between kinds, also where it has a key of that name.
void put_section(Json& place, const Json& section) {
  if (!section.is_object()) {
    place = section;
    return;
  }
  if (!place.is_object()) place = Json::object();
  for (const auto& [key, value] : section.items()) put_value(place[key], value);
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& where) {
  if (text.size() > kMaxBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted", where, text.size(), kMaxBytes);
  NestingCheck(text, where).run();
  try {
    const toml::table table = toml::parse(text);
    return to_json(table, where + ":");
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    fail<FileError>("{}:{}:{}: {}", where, at.line, at.column, one_line(error.description()));
  }
}

Json read_toml(const std::filesystem::path& path) {
  refuse_gguf(path);  // attune inspect takes a configuration in the place of a model
  return parse_toml(read_file(path, kMaxBytes), path.string());
}

void apply_override(Json& config, const std::string& assignment) {
  if (assignment.size() > kMaxBytes) fail<ConfigError>("--set: an assignment has {} bytes", assignment.size());
  try {
    Json(assignment).dump();
  } catch (const Json::exception&) {
    fail<ConfigError>("--set {}: is not valid UTF-8", in_quotes(assignment));
  }
  const auto [path, value] = split(assignment);
  Json* place = &config;
  std::string above;
  for (const std::string& part : path) {
    if (place->is_null()) *place = Json::object();
    if (above.find('.') != std::string::npos) name_to_table(*place);
    if (!place->is_object()) fail<ConfigError>("--set {}: {} is no table but {}", assignment, above, place->dump());
    place = &(*place)[part];
    above += (above.empty() ? "" : ".") + part;
  }
  const Json parsed = parse_value(value);
  if (path.size() == 1) return put_section(*place, parsed);
  put_value(*place, parsed);
}

std::vector<std::string> in_order_of_depth(std::vector<std::string> assignments) {
  const auto depth = [](const std::string& assignment) {
    return std::count(assignment.begin(),
                      assignment.begin() + static_cast<int64_t>(std::min(assignment.find('='), assignment.size())),
                      '.');
  };
  std::ranges::stable_sort(assignments, {}, depth);
  return assignments;
}

void put_sections(Json& config, const Json& sections) {
  for (const auto& [name, section] : sections.items()) put_section(config[name], section);
}

std::string write_toml_value(const Json& value) {
  std::string text;
  if (value.is_object()) {
    for (const auto& [key, element] : value.items())
      text += (text.empty() ? "" : ", ") + key + " = " + write_toml_value(element);
    return "{" + text + "}";
  }
  if (value.is_array()) {
    for (const Json& element : value) text += (text.empty() ? "" : ", ") + write_toml_value(element);
    return "[" + text + "]";
  }
  if (value.is_null()) fail<ConfigError>("TOML has no null and no infinite number");
  for (const char c : show(value)) {
    if (c == 0x7f) {
      text += "\\u007f";  // the one character that JSON allows in a string and TOML does not
    } else {
      text += c;
    }
  }
  return text;
}

std::string write_toml(const Json& sections) {
  std::string text;
  for (const auto& [section, table] : sections.items()) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    for (const auto& [key, value] : table.items()) text += fmt::format("{} = {}\n", key, write_toml_value(value));
  }
  return text;
}

}  // namespace attune

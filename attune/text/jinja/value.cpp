#include "attune/text/jinja/value.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/text/unicode.h"

namespace attune::jinja {
namespace {

constexpr int64_t kMaxWeight = int64_t{1} << 40;

// Depth and weight of what holds these values.
struct Extent {
  int depth = 1;
  int64_t weight = 4;
  void add(const Value& value) {
    depth = std::max(depth, value.depth() + 1);
    weight = std::min(weight + value.weight(), kMaxWeight);
    if (depth > Value::kMaxDepth) fail<DataError>("a value is nested more than {} levels deep", Value::kMaxDepth);
  }
};

// The shortest digits that give the number again; an exponent below -4 and from 16 on.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string scientific(buffer.data(), end.ptr);
  const size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", scientific.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
  const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string text(buffer.data(), fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

// As Python's str.isprintable(): no controls, no white space but " ".
bool is_printable(char32_t c) {
  return c == ' ' || !(U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_C_MASK | U_GC_Z_MASK));
}

std::string text_repr(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = next_code_point(text, position);
    if (c == U'\\' || c == static_cast<char32_t>(quote)) result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (is_printable(c))
      result.append(text, begin, position - begin);
    else if (c < 0x100)
      result += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    else if (c < 0x10000)
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else
      result += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
  return result + quote;
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}
  std::string take() { return std::move(text_); }

  void write(const Value& value) {
    if (value.is<None>())
      text_ += "null";
    else if (const bool* flag = value.get<bool>())
      text_ += *flag ? "true" : "false";
    else if (value.is<int64_t>())
      text_ += std::to_string(value.integer());
    else if (value.is<double>())
      write_number(value.number());
    else if (const std::string* text = value.text())
      write_text(*text);
    else if (const List* list = value.list())
      write_list(*list);
    else if (const Dict* dict = value.dict())
      write_dict(*dict);
    else
      fail<DataError>("tojson: a value of type {} is no JSON", value.type_name());
  }

 private:
  void write_number(double value) {
    if (std::isnan(value))
      text_ += "NaN";
    else if (std::isinf(value))
      text_ += value < 0 ? "-Infinity" : "Infinity";
    else
      text_ += float_text(value);
  }
  void write_text(const std::string& text) {
    text_ += '"';
    for (size_t position = 0; position < text.size();) {
      const size_t begin = position;
      const char32_t c = next_code_point(text, position);
      constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
      const size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
      if (special != std::string_view::npos) {
        text_ += '\\';
        text_ += kLetters[special];
      } else if (c < 0x20 || (style_.ascii && c > 0x7e && c < 0x10000)) {
        text_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      } else if (style_.ascii && c >= 0x10000) {
        const uint32_t rest = c - 0x10000;
        text_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
      } else {
        text_.append(text, begin, position - begin);
      }
    }
    text_ += '"';
  }
  void new_line() {
    if (style_.indent < 0) return;
    text_ += '\n';
    text_.append(static_cast<size_t>(style_.indent * level_), ' ');
  }
  void separate(bool first) {
    if (!first) text_ += style_.item_separator;
    new_line();
  }
  void write_list(const List& list) {
    if (list.items.empty()) {
      text_ += "[]";
      return;
    }
    text_ += '[';
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      separate(i == 0);
      write(list.items[i]);
    }
    --level_;
    new_line();
    text_ += ']';
  }
  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) {
      text_ += "{}";
      return;
    }
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) std::ranges::sort(entries, [](const auto* a, const auto* b) { return a->first < b->first; });
    text_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      separate(i == 0);
      write_text(entries[i]->first);
      text_ += style_.key_separator;
      write(entries[i]->second);
    }
    --level_;
    new_line();
    text_ += '}';
  }

  const JsonStyle& style_;
  std::string text_;
  int64_t level_ = 0;
};

}  // namespace

const Value* Dict::find(std::string_view key) const {
  const auto found = std::ranges::find_if(entries, [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Value Value::list(std::vector<Value> items, bool is_tuple) {
  Extent extent;
  for (const Value& item : items) extent.add(item);
  return Value(std::make_shared<const List>(List{std::move(items), extent.depth, extent.weight, is_tuple}));
}

Value Value::dict(std::vector<std::pair<std::string, Value>> entries) {
  Extent extent;
  for (const auto& [key, value] : entries) {
    extent.add(value);
    extent.weight += static_cast<int64_t>(key.size()) + 4;
  }
  return Value(std::make_shared<const Dict>(Dict{std::move(entries), extent.depth, extent.weight}));
}

Value Value::from_json(const Json& json) {
  if (json.is_null()) return Value();
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)
    fail<DataError>("the integer {} is beyond 64 bits with a sign", json.get<uint64_t>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(from_json(item));
    return list(std::move(items));
  }
  std::vector<std::pair<std::string, Value>> entries;
  for (const auto& [key, value] : json.items()) entries.emplace_back(key, from_json(value));
  return dict(std::move(entries));
}

int Value::depth() const {
  if (list() != nullptr) return list()->depth;
  if (dict() != nullptr) return dict()->depth;
  if (const auto* loop = get<std::shared_ptr<const Loop>>()) return (*loop)->items->depth + 1;
  if (const auto* method = get<std::shared_ptr<const Method>>()) return (*method)->dict->depth + 1;
  return 1;
}

int64_t Value::weight() const {
  if (list() != nullptr) return list()->weight;
  if (dict() != nullptr) return dict()->weight;
  return 4 + (text() != nullptr ? static_cast<int64_t>(text()->size()) : 0);
}

bool Value::truth() const {
  if (is<Undefined>() || is<None>()) return false;
  if (is_number()) return number() != 0;
  if (text() != nullptr) return !text()->empty();
  if (list() != nullptr) return !list()->items.empty();
  if (dict() != nullptr) return !dict()->entries.empty();
  return true;
}

const char* Value::type_name() const {
  constexpr std::array<const char*, 13> kNames = {"undefined", "None",     "bool",  "int",  "float",
                                                  "str",       "list",     "dict",  "loop", "namespace",
                                                  "macro",     "function", "method"};
  return kNames[data_.index()];
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() == *b.text();
  if (a.list() != nullptr && b.list() != nullptr)
    return a.list()->is_tuple == b.list()->is_tuple && std::ranges::equal(a.list()->items, b.list()->items, equal);
  if (a.dict() != nullptr && b.dict() != nullptr) {
    if (a.dict()->entries.size() != b.dict()->entries.size()) return false;
    std::map<std::string_view, const Value*> others;
    for (const auto& [key, value] : b.dict()->entries) others.emplace(key, &value);
    return std::ranges::all_of(a.dict()->entries, [&](const auto& entry) {
      const auto other = others.find(entry.first);
      return other != others.end() && equal(entry.second, *other->second);
    });
  }
  if (a.is<Namespace*>() && b.is<Namespace*>()) return *a.get<Namespace*>() == *b.get<Namespace*>();
  if (const auto* one = a.get<std::shared_ptr<const Method>>(), *other = b.get<std::shared_ptr<const Method>>();
      one != nullptr && other != nullptr)
    return (*one)->dict == (*other)->dict && (*one)->name == (*other)->name;
  return (a.is<None>() && b.is<None>()) || (a.is<Undefined>() && b.is<Undefined>());
}

std::string repr(const Value& value) {
  return value.text() != nullptr ? text_repr(*value.text()) : str(value);
}

std::string str(const Value& value) {
  if (value.is<Undefined>()) return "";
  if (value.is<None>()) return "None";
  if (const bool* flag = value.get<bool>()) return *flag ? "True" : "False";
  if (value.is<int64_t>()) return std::to_string(value.integer());
  if (value.is<double>()) return float_text(value.number());
  if (value.text() != nullptr) return *value.text();
  if (const List* list = value.list()) {
    std::string text;
    for (const Value& item : list->items) text += (text.empty() ? "" : ", ") + repr(item);
    if (list->is_tuple) return "(" + text + (list->items.size() == 1 ? ",)" : ")");
    return "[" + text + "]";
  }
  if (const Dict* dict = value.dict()) {
    std::string text;
    for (const auto& [key, item] : dict->entries)
      text += (text.empty() ? "" : ", ") + text_repr(key) + ": " + repr(item);
    return "{" + text + "}";
  }
  if (const auto* method = value.get<std::shared_ptr<const Method>>())
    fail<DataError>("{0} is a method of a dict, which cannot be written: ['{0}'] is the value of its key \"{0}\"",
                    (*method)->name);
  fail<DataError>("a {} cannot be written", value.type_name());
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value);
  return writer.take();
}

}  // namespace attune::jinja

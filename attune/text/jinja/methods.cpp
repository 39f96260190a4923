// Methods of texts and dicts, as Python's.

#include <algorithm>
#include <functional>
#include <map>

#include "attune/base/fail.h"
#include "attune/text/jinja/builtins.h"
#include "attune/text/unicode.h"

namespace attune::jinja {
namespace {

struct TextMethod {
  std::function<Value(const std::string& text, const Arguments& arguments, Meter& meter)> apply;
  std::vector<std::string_view> names = {};  // of its arguments; most methods of Python take them by their place alone
  size_t least = 0;                          // so many of them have to be there
};

constexpr int64_t kAll = INT64_MAX;
constexpr size_t kMostParts = static_cast<size_t>(kMostWork / 32);  // more of them could not be paid

void add_part(std::vector<std::string>& parts, std::string_view part) {
  if (parts.size() >= kMostParts) fail<DataError>("a text has more than {} parts", kMostParts);
  parts.emplace_back(part);
}

// Finding costs a product of both lengths at worst.
void charge_search(std::string_view text, std::string_view part, Meter& meter) {
  meter.charge(text.size() + text.size() / 64 * (part.size() / 64));
}

int64_t most_of(const Arguments& arguments, size_t place, std::string_view name) {
  const int64_t most = arguments.integer(place, name, -1);
  return most < 0 ? kAll : most;
}

Value texts(std::vector<std::string> parts, Meter& meter) {
  meter.charge_items(parts.size());
  std::vector<Value> values;
  for (std::string& part : parts) values.emplace_back(std::move(part));
  return Value::list(std::move(values));
}

std::vector<std::string> split_at_spaces(const std::string& text, int64_t most) {
  std::vector<std::string> parts;
  for (std::string_view word : split_words(text)) {
    if (static_cast<int64_t>(parts.size()) == most) {
      const std::string_view rest = std::string_view(text).substr(static_cast<size_t>(word.data() - text.data()));
      parts.push_back(strip(rest, nullptr, false, true));
      return parts;
    }
    add_part(parts, word);
  }
  return parts;
}

std::vector<std::string> split_at(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos && static_cast<int64_t>(parts.size()) < most;
       at = text.find(separator, begin)) {
    add_part(parts, text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> split_from_end(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<std::string> parts;
  while (static_cast<int64_t>(parts.size()) < most) {
    const size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    add_part(parts, text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.emplace_back(text);
  std::ranges::reverse(parts);
  return parts;
}

Value split(const std::string& text, const Arguments& arguments, bool from_end, Meter& meter) {
  const int64_t most = most_of(arguments, 1, "maxsplit");
  const Value* separator = arguments.find(0, "sep");
  if (separator == nullptr || separator->is<None>()) {
    if (from_end && most != kAll) fail<DataError>("rsplit: maxsplit without a separator is not supported");
    return texts(split_at_spaces(text, most), meter);
  }
  if (separator->text() == nullptr || separator->text()->empty()) fail<DataError>("split: the separator is no text");
  charge_search(text, *separator->text(), meter);
  return texts(from_end ? split_from_end(text, *separator->text(), most) : split_at(text, *separator->text(), most),
               meter);
}

Value split_lines(const std::string& text, const Arguments&, Meter& meter) {
  constexpr std::u32string_view kEnds = U"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = next_code_point(text, at);
    if (kEnds.find(c) == kEnds.npos) continue;
    if (c == '\r' && text.substr(at, 1) == "\n") ++at;
    add_part(lines, std::string_view(text).substr(begin, end - begin));
    begin = at;
  }
  if (begin < text.size()) add_part(lines, std::string_view(text).substr(begin));
  return texts(std::move(lines), meter);
}

// startswith and endswith take a text or a tuple of texts.
template <class Matches>
Value matches_any(std::string_view what, const Arguments& arguments, Matches matches) {
  const Value& wanted = arguments.positional[0];
  const auto one = [&](const Value& value) {
    if (value.text() == nullptr) fail<DataError>("{}: needs a text, found {}", what, value.type_name());
    return matches(*value.text());
  };
  if (wanted.list() != nullptr && wanted.list()->is_tuple) return Value(std::ranges::any_of(wanted.list()->items, one));
  return Value(one(wanted));
}

Value find(const std::string& text, const Arguments& arguments, bool from_end, Meter& meter) {
  const std::string part = arguments.text(0, "sub", "");
  charge_search(text, part, meter);
  const size_t at = from_end ? text.rfind(part) : text.find(part);
  if (at == std::string::npos) return Value(int64_t{-1});
  return Value(static_cast<int64_t>(decode(std::string_view(text).substr(0, at)).size()));
}

Value join_texts(const std::string& text, const Arguments& arguments, Meter& meter) {
  std::string result;
  bool first = true;
  for (const Value& item : items_of(arguments.positional[0], meter)) {
    if (item.text() == nullptr) fail<DataError>("join: needs texts, found {}", item.type_name());
    meter.charge(text.size() + item.text()->size());
    result += (first ? "" : text) + *item.text();
    first = false;
  }
  return Value(std::move(result));
}

template <class Predicate>
Value all_bytes(const std::string& text, Predicate predicate) {
  return Value(!text.empty() && std::ranges::all_of(text, predicate));
}

Value title_case(const std::string& text) {
  std::string result = lowercase(text);
  bool inside = false;  // of a word
  for (char& c : result) {
    const bool letter = (c >= 'a' && c <= 'z') || (c & 0x80) != 0;
    if (letter && !inside) c = uppercase(std::string_view(&c, 1))[0];
    inside = letter;
  }
  return Value(std::move(result));
}

Value count_parts(const std::string& text, const Arguments& arguments, Meter& meter) {
  const std::string part = arguments.text(0, "sub", "");
  if (part.empty()) fail<DataError>("count: needs a text that is not empty");
  charge_search(text, part, meter);
  return Value(static_cast<int64_t>(split_at(text, part, kAll).size()) - 1);
}

Value replace_parts(const std::string& text, const Arguments& arguments, Meter& meter) {
  if (arguments.positional.size() < 2) fail<DataError>("replace: needs old and new");  // count may have a name
  return Value(replace_all(text, arguments.text(0, "old", ""), arguments.text(1, "new", ""),
                           most_of(arguments, 2, "count"), meter));
}

Value without_prefix(const std::string& text, const Arguments& arguments, Meter&) {
  const std::string part = arguments.text(0, "prefix", "");
  return Value(text.starts_with(part) ? text.substr(part.size()) : text);
}

Value without_suffix(const std::string& text, const Arguments& arguments, Meter&) {
  const std::string part = arguments.text(0, "suffix", "");
  return Value(text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text);
}

const std::map<std::string_view, TextMethod>& text_methods() {
  static const std::map<std::string_view, TextMethod> methods = {
      {"strip", {[](auto& t, auto& a, auto&) { return Value(strip(t, a.find(0, "chars"), true, true)); }, {""}}},
      {"lstrip", {[](auto& t, auto& a, auto&) { return Value(strip(t, a.find(0, "chars"), true, false)); }, {""}}},
      {"rstrip", {[](auto& t, auto& a, auto&) { return Value(strip(t, a.find(0, "chars"), false, true)); }, {""}}},
      {"split", {[](auto& t, auto& a, auto& m) { return split(t, a, false, m); }, {"sep", "maxsplit"}}},
      {"rsplit", {[](auto& t, auto& a, auto& m) { return split(t, a, true, m); }, {"sep", "maxsplit"}}},
      {"splitlines", {split_lines}},
      {"startswith",
       {[](auto& t, auto& a, auto&) { return matches_any("startswith", a, [&](auto& p) { return t.starts_with(p); }); },
        {""},
        1}},
      {"endswith",
       {[](auto& t, auto& a, auto&) { return matches_any("endswith", a, [&](auto& p) { return t.ends_with(p); }); },
        {""},
        1}},
      {"find", {[](auto& t, auto& a, auto& m) { return find(t, a, false, m); }, {""}, 1}},
      {"rfind", {[](auto& t, auto& a, auto& m) { return find(t, a, true, m); }, {""}, 1}},
      {"count", {count_parts, {""}, 1}},
      {"replace", {replace_parts, {"", "", "count"}, 2}},
      {"removeprefix", {without_prefix, {""}, 1}},
      {"removesuffix", {without_suffix, {""}, 1}},
      {"join", {join_texts, {""}, 1}},
      {"upper", {[](auto& t, auto&, auto&) { return Value(uppercase(t)); }}},
      {"lower", {[](auto& t, auto&, auto&) { return Value(lowercase(t)); }}},
      {"capitalize", {[](auto& t, auto&, auto&) { return Value(capitalize(t)); }}},
      {"title", {[](auto& t, auto&, auto&) { return title_case(t); }}},
      {"isdigit", {[](auto& t, auto&, auto&) { return all_bytes(t, [](char c) { return c >= '0' && c <= '9'; }); }}},
      {"isspace", {[](auto& t, auto&, auto&) { return Value(!t.empty() && strip(t, nullptr, true, true).empty()); }}},
  };
  return methods;
}

Value pairs_of(const Dict& dict, Meter& meter) {
  meter.charge_items(3 * dict.entries.size());
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict.entries) pairs.push_back(Value::list({Value(key), value}, true));
  return Value::list(std::move(pairs));
}

std::optional<Value> call_dict_method(const Dict& dict, std::string_view name, const Arguments& arguments,
                                      Meter& meter) {
  if (name == "get") {
    arguments.check("get", 1, {"", ""});
    const Value* otherwise = arguments.find(1, "default");
    const Value* found = dict.find(arguments.text(0, "key", ""));
    meter.charge(dict.entries.size());
    return found != nullptr ? *found : otherwise != nullptr ? *otherwise : Value();
  }
  if (name != "items" && name != "keys" && name != "values") return {};
  arguments.check(name, 0, {});
  if (name == "items") return pairs_of(dict, meter);
  meter.charge_items(dict.entries.size());
  std::vector<Value> values;
  for (const auto& [key, value] : dict.entries) values.push_back(name == "keys" ? Value(key) : value);
  return Value::list(std::move(values));
}

}  // namespace

std::optional<Value> call_method(const Value& object, std::string_view name, const Arguments& arguments, Meter& meter) {
  if (const Dict* dict = object.dict()) return call_dict_method(*dict, name, arguments, meter);
  if (const std::string* text = object.text()) {
    const auto found = text_methods().find(name);
    if (found == text_methods().end()) return {};
    meter.charge(2 * text->size());
    arguments.check(name, found->second.least, found->second.names);
    return found->second.apply(*text, arguments, meter);
  }
  return {};
}

std::u32string decode(std::string_view text) {
  std::u32string points;
  for (size_t position = 0; position < text.size();) points += next_code_point(text, position);
  return points;
}

std::string encode(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) append_utf8(bytes, c);
  return bytes;
}

std::string strip(std::string_view text, const Value* characters, bool at_begin, bool at_end) {
  const bool spaces = characters == nullptr || characters->is<None>();
  if (!spaces && characters->text() == nullptr)
    fail<DataError>("strip: needs a text, found {}", characters->type_name());
  const std::u32string set = spaces ? std::u32string() : decode(*characters->text());
  if (set.size() > 256) fail<DataError>("strip: needs at most 256 characters, found {}", set.size());
  const auto goes = [&](char32_t c) { return spaces ? is_space(c) : set.find(c) != std::u32string::npos; };
  const std::u32string points = decode(text);
  size_t begin = 0, end = points.size();
  while (at_begin && begin < end && goes(points[begin])) ++begin;
  while (at_end && end > begin && goes(points[end - 1])) --end;
  return encode(std::u32string_view(points).substr(begin, end - begin));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to, int64_t most, Meter& meter) {
  if (from.empty()) fail<DataError>("replace: needs a text that is not empty");
  charge_search(text, from, meter);
  std::string result;
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos && most-- > 0; at = text.find(from, begin)) {
    meter.charge(to.size() + 1);
    result.append(text.substr(begin, at - begin)).append(to);
    begin = at + from.size();
  }
  return result.append(text.substr(begin));
}

std::string uppercase(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result = lowercase(text);
  if (!result.empty()) result[0] = uppercase(result.substr(0, 1))[0];
  return result;
}

}  // namespace attune::jinja

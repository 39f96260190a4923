// Filters, as Jinja's; tojson as transformers has it.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "attune/base/fail.h"
#include "attune/text/jinja/builtins.h"
#include "attune/text/unicode.h"

namespace attune::jinja {
namespace {

using ApplyFilter = std::function<Value(const Value& value, const Arguments& arguments, Meter& meter)>;

struct Filter {
  ApplyFilter apply;
  std::vector<std::string_view> names = {};  // of its arguments
  size_t least = 0;                          // so many of them have to be there
  bool takes_any = false;                    // its arguments are those of another filter or of a test
};

// A filter for text; everything else is written as text first.
template <class F>
ApplyFilter on_text(F f) {
  return [f](const Value& value, const Arguments&, Meter& meter) {
    meter.charge(2 * value.weight());
    return Value(f(str(value)));
  };
}

Value trim(const Value& value, const Arguments& arguments, Meter& meter) {
  meter.charge(2 * value.weight());
  return Value(strip(str(value), arguments.find(0, "chars"), true, true));
}

Value json(const Value& value, const Arguments& arguments, Meter& meter) {
  JsonStyle style;
  style.ascii = arguments.flag(0, "ensure_ascii", false);
  style.indent = arguments.integer(1, "indent", -1);
  if (style.indent > 16) fail<DataError>("tojson: indent is {}, needs at most 16", style.indent);
  if (style.indent >= 0) style.item_separator = ",";
  if (const Value* separators = arguments.find(2, "separators"); separators != nullptr && !separators->is<None>()) {
    const List* list = separators->list();
    if (list == nullptr || list->items.size() != 2) fail<DataError>("tojson: separators needs two texts");
    style.item_separator = written(list->items[0], meter);
    style.key_separator = written(list->items[1], meter);
    if (style.item_separator.size() + style.key_separator.size() > 64)
      fail<DataError>("tojson: the separators have more than 64 bytes");
  }
  style.sort_keys = arguments.flag(3, "sort_keys", false);
  // What stands before a separator weighs 4 or more.
  const auto separators = static_cast<int64_t>(style.item_separator.size() + style.key_separator.size()) / 4;
  meter.charge(value.weight() * (2 + separators + std::max(style.indent, int64_t{0}) * value.depth()));
  return Value(to_json(value, style));
}

Value or_default(const Value& value, const Arguments& arguments, Meter&) {
  const bool missing = arguments.flag(1, "boolean", false) ? !value.truth() : value.is<Undefined>();
  if (!missing) return value;
  const Value* otherwise = arguments.find(0, "default_value");
  return otherwise != nullptr ? *otherwise : Value("");
}

// "a.b.0" of a value
Value path_of(Value value, std::string_view path, Meter& meter) {
  meter.charge(path.size());
  while (true) {
    const size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = error == std::errc() && end == part.data() + part.size();
    value = number ? subscript(value, Value(index), meter) : named_item(value, part);
    if (dot == std::string_view::npos) return value;
    path = path.substr(dot + 1);
  }
}

Arguments without_first(Arguments arguments, size_t count) {
  std::vector<Value>& all = arguments.positional;
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(count, all.size())));
  return arguments;
}

// select, reject, selectattr and rejectattr.
ApplyFilter selection(bool by_attribute, bool keep) {
  return [=](const Value& value, const Arguments& arguments, Meter& meter) {
    const size_t first = by_attribute ? 1 : 0;  // where the test's name is
    if (arguments.positional.size() < first) fail<DataError>("selectattr: needs the name of an attribute");
    const std::string path = by_attribute ? arguments.text(0, "attr", "") : "";
    const bool by_test = arguments.positional.size() > first;
    const std::string test = by_test ? arguments.text(first, "test", "") : "";
    if (by_test && !has_test(test)) fail<DataError>("select: test \"{}\" is not supported", test);
    const Arguments rest = without_first(arguments, first + 1);
    std::vector<Value> kept;
    for (const Value& item : items_of(value, meter)) {
      const Value tested = by_attribute ? path_of(item, path, meter) : item;
      const bool passes = by_test ? apply_test(test, tested, rest, meter) : tested.truth();
      if (passes == keep) kept.push_back(item);
    }
    return Value::list(std::move(kept));
  };
}

Value map_items(const Value& value, const Arguments& arguments, Meter& meter) {
  std::vector<Value> results;
  if (!arguments.positional.empty()) {
    const std::string filter = arguments.text(0, "filter", "");
    if (!has_filter(filter)) fail<DataError>("map: filter \"{}\" is not supported", filter);
    const Arguments rest = without_first(arguments, 1);
    for (const Value& item : items_of(value, meter)) results.push_back(apply_filter(filter, item, rest, meter));
    return Value::list(std::move(results));
  }
  arguments.check("map", 0, {"attribute", "default"});
  if (arguments.find(0, "attribute") == nullptr) fail<DataError>("map: needs a filter or an attribute");
  const std::string path = arguments.text(0, "attribute", "");
  const Value* otherwise = arguments.find(1, "default");
  for (const Value& item : items_of(value, meter)) {
    const Value found = path_of(item, path, meter);
    results.push_back(found.is<Undefined>() && otherwise != nullptr ? *otherwise : found);
  }
  return Value::list(std::move(results));
}

Value join(const Value& value, const Arguments& arguments, Meter& meter) {
  const std::string separator = arguments.text(0, "d", "");
  const std::string path = arguments.text(1, "attribute", "");
  std::string result;
  bool first = true;
  for (const Value& item : items_of(value, meter)) {
    const Value part = path.empty() ? item : path_of(item, path, meter);
    meter.charge(part.weight() + static_cast<int64_t>(separator.size()));
    result += (first ? "" : separator) + str(part);
    first = false;
  }
  return Value(std::move(result));
}

Value items(const Value& value, const Arguments&, Meter& meter) {
  if (value.is<Undefined>()) return Value::list({});
  if (value.dict() == nullptr) fail<DataError>("items: needs a dict, found {}", value.type_name());
  return *call_method(value, "items", {}, meter);
}

Value replace(const Value& value, const Arguments& arguments, Meter& meter) {
  const int64_t most = arguments.integer(2, "count", -1);
  const Value* from = arguments.find(0, "old");
  const Value* to = arguments.find(1, "new");
  if (from == nullptr || to == nullptr) fail<DataError>("replace: needs old and new");
  return Value(replace_all(written(value, meter), written(*from, meter), written(*to, meter),
                           most < 0 ? INT64_MAX : most, meter));
}

Value at_end_of(const Value& value, bool last, Meter& meter) {
  const std::vector<Value> all = items_of(value, meter);
  if (all.empty()) return Value(Undefined{last ? "the last item" : "the first item"});
  return last ? all.back() : all.front();
}

Value to_integer(const Value& value, const Arguments& arguments, Meter& meter) {
  meter.charge(2 * value.weight());
  if (value.is_integer()) return Value(value.integer());
  if (value.is<double>()) {
    if (!(std::abs(value.number()) < 9e18)) fail<DataError>("int: a number is too large");
    return Value(static_cast<int64_t>(value.number()));
  }
  int64_t number = arguments.integer(0, "default", 0);
  const std::string text = value.text() != nullptr ? strip(*value.text(), nullptr, true, true) : "";
  double real = 0;
  int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  if (!text.empty() && rest == end && error == std::errc::result_out_of_range)
    fail<DataError>("int: a number is too large");
  if (!text.empty() && rest == end)
    number = whole;
  else if (!text.empty() && std::from_chars(text.data(), end, real).ptr == end && std::abs(real) < 9e18)
    number = static_cast<int64_t>(real);
  return Value(number);
}

Value to_float(const Value& value, const Arguments& arguments, Meter& meter) {
  meter.charge(2 * value.weight());
  if (value.is_number()) return Value(value.number());
  const Value* otherwise = arguments.find(0, "default");
  double number = otherwise != nullptr && otherwise->is_number() ? otherwise->number() : 0;
  const std::string text = value.text() != nullptr ? strip(*value.text(), nullptr, true, true) : "";
  double real = 0;
  if (!text.empty() && std::from_chars(text.data(), text.data() + text.size(), real).ptr == text.data() + text.size())
    number = real;
  return Value(number);
}

Value absolute(const Value& value, const Arguments&, Meter&) {
  if (!value.is_number()) fail<DataError>("abs: needs a number, found {}", value.type_name());
  if (value.is<double>()) return Value(std::abs(value.number()));
  if (value.integer() == INT64_MIN) fail<DataError>("abs: a number is too large");
  return Value(std::abs(value.integer()));
}

// Texts compare in lower case unless asked otherwise.
Value sort_key(const Value& value, bool case_sensitive) {
  return value.text() != nullptr && !case_sensitive ? Value(lowercase(*value.text())) : value;
}

Value sort(const Value& value, const Arguments& arguments, Meter& meter) {
  const bool reverse = arguments.flag(0, "reverse", false), exact = arguments.flag(1, "case_sensitive", false);
  const std::string path = arguments.text(2, "attribute", "");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(value, meter)) {
    meter.charge(20 * item.weight());
    keyed.emplace_back(sort_key(path.empty() ? item : path_of(item, path, meter), exact), item);
  }
  std::ranges::stable_sort(
      keyed, [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  std::vector<Value> sorted;
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return Value::list(std::move(sorted));
}

Value dict_sort(const Value& value, const Arguments& arguments, Meter& meter) {
  Arguments by_key;
  by_key.named.emplace_back("case_sensitive", Value(arguments.flag(0, "case_sensitive", false)));
  by_key.named.emplace_back("attribute", Value("0"));
  return sort(items(value, {}, meter), by_key, meter);
}

Value unique(const Value& value, const Arguments& arguments, Meter& meter) {
  const bool exact = arguments.flag(0, "case_sensitive", false);
  std::vector<Value> kept, keys;
  for (const Value& item : items_of(value, meter)) {
    const Value key = sort_key(item, exact);
    for (const Value& other : keys) meter.charge(std::min(key.weight(), other.weight()));
    if (std::ranges::any_of(keys, [&](const Value& other) { return equal(key, other); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return Value::list(std::move(kept));
}

Value reverse(const Value& value, const Arguments&, Meter& meter) {
  std::vector<Value> all = items_of(value, meter);
  std::ranges::reverse(all);
  if (value.text() == nullptr) return Value::list(std::move(all));
  std::string text;
  for (const Value& character : all) text += *character.text();
  return Value(std::move(text));
}

Value indent(const Value& value, const Arguments& arguments, Meter& meter) {
  const Value* width = arguments.find(0, "width");
  const std::string margin =
      width != nullptr && width->text() != nullptr
          ? *width->text()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(arguments.integer(0, "width", 4), 0, 256)), ' ');
  const bool blank = arguments.flag(2, "blank", false);
  std::string result = arguments.flag(1, "first", false) ? margin : "";
  for (const char c : written(value, meter)) {
    if (!result.empty() && result.back() == '\n' && (blank || c != '\n')) {
      meter.charge(margin.size());
      result += margin;
    }
    meter.charge(int64_t{1});
    result += c;
  }
  if (blank && result.ends_with('\n')) result += margin;
  return Value(std::move(result));
}

std::string title(const std::string& text) {
  constexpr std::string_view kBefore = "- \t\n\r\f\v({[<";
  std::string result = lowercase(text);
  for (size_t i = 0; i < result.size(); ++i)
    if (i == 0 || kBefore.find(result[i - 1]) != std::string_view::npos)
      result[i] = uppercase(std::string_view(result).substr(i, 1))[0];
  return result;
}

const std::map<std::string_view, Filter>& filters() {
  static const Filter kDefault{or_default, {"default_value", "boolean"}};
  static const Filter kLength{[](auto& v, auto&, auto& m) {
    if (v.text() != nullptr) m.charge(v.weight());
    return Value(length_of(v));
  }};
  static const std::map<std::string_view, Filter> all = {
      {"trim", {trim, {"chars"}}},
      {"tojson", {json, {"ensure_ascii", "indent", "separators", "sort_keys"}}},
      {"default", kDefault},
      {"d", kDefault},
      {"length", kLength},
      {"count", kLength},
      {"upper", {on_text(uppercase)}},
      {"lower", {on_text([](const std::string& t) { return lowercase(t); })}},
      {"capitalize", {on_text(capitalize)}},
      {"title", {on_text(title)}},
      {"string", {on_text([](const std::string& t) { return t; })}},
      {"safe", {on_text([](const std::string& t) { return t; })}},
      {"join", {join, {"d", "attribute"}}},
      {"select", {.apply = selection(false, true), .takes_any = true}},
      {"reject", {.apply = selection(false, false), .takes_any = true}},
      {"selectattr", {.apply = selection(true, true), .takes_any = true}},
      {"rejectattr", {.apply = selection(true, false), .takes_any = true}},
      {"map", {.apply = map_items, .takes_any = true}},
      {"items", {items}},
      {"list", {[](auto& v, auto&, auto& m) { return Value::list(items_of(v, m)); }}},
      {"replace", {replace, {"old", "new", "count"}, 2}},
      {"first", {[](auto& v, auto&, auto& m) { return at_end_of(v, false, m); }}},
      {"last", {[](auto& v, auto&, auto& m) { return at_end_of(v, true, m); }}},
      {"int", {to_integer, {"default"}}},
      {"float", {to_float, {"default"}}},
      {"abs", {absolute}},
      {"sort", {sort, {"reverse", "case_sensitive", "attribute"}}},
      {"dictsort", {dict_sort, {"case_sensitive"}}},
      {"unique", {unique, {"case_sensitive"}}},
      {"reverse", {reverse}},
      {"indent", {indent, {"width", "first", "blank"}}},
  };
  return all;
}

}  // namespace

bool has_filter(std::string_view name) {
  return filters().contains(name);
}

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter) {
  meter.charge(int64_t{1});
  const Filter& filter = filters().at(name);
  if (!filter.takes_any) arguments.check(name, filter.least, filter.names);
  return filter.apply(value, arguments, meter);
}

}  // namespace attune::jinja

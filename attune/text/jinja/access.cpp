// Arguments, and what is in a value.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "attune/base/fail.h"
#include "attune/text/jinja/builtins.h"

namespace attune::jinja {
namespace {

constexpr int64_t kFarthest = int64_t{1} << 40;  // bounds of slices beyond it are all the same

Value loop_attribute(const Loop& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index), length = static_cast<int64_t>(loop.items->items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "previtem" && index > 0) return loop.items->items[loop.index - 1];
  if (name == "nextitem" && index + 1 < length) return loop.items->items[loop.index + 1];
  if (name == "previtem" || name == "nextitem") return Value(Undefined{"loop." + std::string(name)});
  fail<DataError>("loop.{} is not supported", name);
}

// The methods that Python's dicts have. Those that change a dict are undefined in the sandbox of transformers.
constexpr std::array<std::string_view, 6> kDictMethods = {"copy", "fromkeys", "get", "items", "keys", "values"};
constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault", "update"};

std::optional<Value> method_of(const std::shared_ptr<const Dict>& dict, std::string_view name) {
  if (const auto found = std::ranges::find(kDictMethods, name); found != kDictMethods.end())
    return Value(std::make_shared<const Method>(Method{dict, *found}));
  if (std::ranges::find(kDictChanges, name) != kDictChanges.end()) return Value(Undefined{std::string(name)});
  return {};
}

Value character(std::u32string_view text, int64_t index) {
  return Value(encode(text.substr(static_cast<size_t>(index), 1)));
}

}  // namespace

const Value* Arguments::find(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  const auto found = std::ranges::find_if(named, [&](const auto& argument) { return argument.first == name; });
  return found == named.end() ? nullptr : &found->second;
}

bool Arguments::flag(size_t place, std::string_view name, bool otherwise) const {
  const Value* value = find(place, name);
  return value != nullptr ? value->truth() : otherwise;
}

int64_t Arguments::integer(size_t place, std::string_view name, int64_t otherwise) const {
  const Value* value = find(place, name);
  if (value == nullptr || value->is<None>()) return otherwise;
  if (!value->is_integer()) fail<DataError>("{} needs an integer, found {}", name, value->type_name());
  return value->integer();
}

std::string Arguments::text(size_t place, std::string_view name, std::string_view otherwise) const {
  const Value* value = find(place, name);
  if (value == nullptr || value->is<None>()) return std::string(otherwise);
  if (value->is<int64_t>()) return std::to_string(value->integer());  // an attribute may be an index
  if (value->text() == nullptr) fail<DataError>("{} needs a text, found {}", name, value->type_name());
  return *value->text();
}

void Arguments::check(std::string_view what, size_t least, const std::vector<std::string_view>& names) const {
  if (positional.size() > names.size())
    fail<DataError>("{}: takes at most {} arguments, found {}", what, names.size(), positional.size());
  for (const auto& [name, value] : named)
    if (std::ranges::find(names, name) == names.end()) fail<DataError>("{}: argument {} is not supported", what, name);
  if (positional.size() + named.size() < least) fail<DataError>("{}: needs {} arguments", what, least);
}

void Meter::charge(int64_t work) {
  left_ -= std::max(work, int64_t{0});
  if (left_ < 0) fail<DataError>("the template takes too much work");
}

std::string written(const Value& value, Meter& meter) {
  meter.charge(value.weight());
  return str(value);
}

Value attribute(const Value& object, std::string_view name) {
  if (const auto* undefined = object.get<Undefined>())
    fail<DataError>("{} is undefined, its {} was asked for", undefined->name, name);
  if (const auto* dict = object.get<std::shared_ptr<const Dict>>()) {
    if (std::optional<Value> method = method_of(*dict, name)) return *method;
    if (const Value* found = (*dict)->find(name)) return *found;
  }
  if (const auto* space = object.get<Namespace*>()) {
    const auto found = (*space)->attributes.find(std::string(name));
    if (found != (*space)->attributes.end()) return found->second;
  }
  if (const auto* loop = object.get<std::shared_ptr<const Loop>>()) return loop_attribute(**loop, name);
  return Value(Undefined{std::string(name)});
}

Value named_item(const Value& object, std::string_view name) {
  if (const Dict* dict = object.dict())
    if (const Value* found = dict->find(name)) return *found;
  return attribute(object, name);
}

Value subscript(const Value& object, const Value& index, Meter& meter) {
  if (index.text() != nullptr) {
    meter.charge(index.weight());
    if (const Dict* dict = object.dict()) meter.charge(dict->entries.size());
    return named_item(object, *index.text());
  }
  if (const auto* undefined = object.get<Undefined>())
    fail<DataError>("{} is undefined, an item of it was asked for", undefined->name);
  if (!index.is_integer()) return Value(Undefined{"an item"});
  if (const List* list = object.list()) {
    const auto size = static_cast<int64_t>(list->items.size());
    const int64_t at = index.integer() < 0 ? index.integer() + size : index.integer();
    return at >= 0 && at < size ? list->items[static_cast<size_t>(at)] : Value(Undefined{"an item of a list"});
  }
  if (object.text() != nullptr) {
    meter.charge(object.weight());
    const std::u32string points = decode(*object.text());
    const auto size = static_cast<int64_t>(points.size());
    const int64_t at = index.integer() < 0 ? index.integer() + size : index.integer();
    return at >= 0 && at < size ? character(points, at) : Value(Undefined{"a character of a text"});
  }
  return Value(Undefined{"an item"});
}

Value slice(const Value& object, const std::array<Value, 3>& bounds, Meter& meter) {
  for (const Value& bound : bounds)
    if (!bound.is<None>() && !bound.is_integer())
      fail<DataError>("a slice needs integers, found {}", bound.type_name());
  const auto& [first, last, stride] = bounds;
  const int64_t step = stride.is<None>() ? 1 : std::clamp(stride.integer(), -kFarthest, kFarthest);
  if (step == 0) fail<DataError>("a slice has step 0");
  if (object.is<Undefined>()) return Value::list({});
  if (object.text() == nullptr && object.list() == nullptr)
    fail<DataError>("a value of type {} has no slices", object.type_name());
  const std::vector<Value> items = items_of(object, meter);
  const auto size = static_cast<int64_t>(items.size());
  const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  const auto place = [&](const Value& bound, int64_t otherwise) {
    if (bound.is<None>()) return otherwise;
    const int64_t at = std::clamp(bound.integer(), -kFarthest, kFarthest);
    return std::clamp(at < 0 ? at + size : at, least, most);
  };
  const int64_t begin = place(first, step > 0 ? 0 : size - 1), end = place(last, step > 0 ? size : -1);
  std::vector<Value> part;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) part.push_back(items[static_cast<size_t>(i)]);
  if (object.list() != nullptr) return Value::list(std::move(part), object.list()->is_tuple);
  std::string text;
  for (const Value& character : part) text += *character.text();
  return Value(std::move(text));
}

bool contains(const Value& container, const Value& item, Meter& meter) {
  if (container.is<Undefined>()) return false;
  if (const std::string* text = container.text()) {
    if (item.text() == nullptr) fail<DataError>("in: a text cannot contain a value of type {}", item.type_name());
    meter.charge(text->size() + text->size() / 64 * (item.text()->size() / 64));
    return text->find(*item.text()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    meter.charge(dict->entries.size());
    return item.text() != nullptr && dict->find(*item.text()) != nullptr;
  }
  if (const List* list = container.list()) {
    for (const Value& one : list->items) meter.charge(std::min(one.weight(), item.weight()));
    return std::ranges::any_of(list->items, [&](const Value& one) { return equal(one, item); });
  }
  fail<DataError>("in: a value of type {} contains nothing", container.type_name());
}

bool less(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();  // UTF-8 sorts as code points do
  if (a.list() != nullptr && b.list() != nullptr)
    return std::ranges::lexicographical_compare(a.list()->items, b.list()->items, less);
  fail<DataError>("values of type {} and {} have no order", a.type_name(), b.type_name());
}

std::vector<Value> items_of(const Value& value, Meter& meter) {
  std::vector<Value> items;
  if (const List* list = value.list()) {
    items = list->items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->entries) items.emplace_back(key);
  } else if (value.text() != nullptr) {
    meter.charge(32 * value.weight());
    for (const char32_t c : decode(*value.text())) items.emplace_back(encode(std::u32string_view(&c, 1)));
  } else if (!value.is<Undefined>()) {
    fail<DataError>("a value of type {} has no items", value.type_name());
  }
  meter.charge_items(items.size());
  return items;
}

int64_t length_of(const Value& value) {
  if (value.is<Undefined>()) return 0;
  if (const List* list = value.list()) return static_cast<int64_t>(list->items.size());
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->entries.size());
  if (const std::string* text = value.text()) return static_cast<int64_t>(decode(*text).size());
  fail<DataError>("length: a value of type {} has none", value.type_name());
}

}  // namespace attune::jinja

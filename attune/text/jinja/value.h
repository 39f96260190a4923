#pragma once
// What a template computes with: the values of Python that JSON has, and what a template adds to them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "attune/base/json.h"

namespace attune::jinja {

class Value;
struct Macro;

struct Undefined {
  std::string name;  // what was looked for
};
struct None {};
struct List {
  std::vector<Value> items;
  int depth = 1;
  int64_t weight = 1;  // of all that is in it, see Value::weight()
  bool is_tuple = false;
};
struct Dict {
  std::vector<std::pair<std::string, Value>> entries;
  int depth = 1;
  int64_t weight = 1;
  const Value* find(std::string_view key) const;
};
/// The `loop` of a {% for %}.
struct Loop {
  std::shared_ptr<const List> items;
  size_t index = 0;
};
/// What namespace() makes: the only thing that a template can change. The interpreter owns it.
struct Namespace {
  std::map<std::string, Value> attributes;
};
/// A function of Jinja or of transformers, by name.
struct Function {
  std::string_view name;
};

/// A method of a dict that is not called where it stands: {% set f = d.get %}.
struct Method {
  std::shared_ptr<const Dict> dict;
  std::string_view name;
};

/// Cheap to copy. Lists and dicts cannot be changed, and are at most kMaxDepth deep, so that there are no cycles.
class Value {
 public:
  static constexpr int kMaxDepth = 100;
  using Text = std::shared_ptr<const std::string>;
  using Data = std::variant<Undefined, None, bool, int64_t, double, Text, std::shared_ptr<const List>,
                            std::shared_ptr<const Dict>, std::shared_ptr<const Loop>, Namespace*, const Macro*,
                            Function, std::shared_ptr<const Method>>;

  Value() : data_(None{}) {}
  template <class T>
  requires std::is_constructible_v<Data, T>
  explicit Value(T data) : data_(std::move(data)) {}
  explicit Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  /// Throw DataError beyond kMaxDepth.
  static Value list(std::vector<Value> items, bool is_tuple = false);
  static Value dict(std::vector<std::pair<std::string, Value>> entries);
  /// Throws DataError too for an integer beyond 64 bits with a sign.
  static Value from_json(const Json& json);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  const std::string* text() const { return is<Text>() ? std::get<Text>(data_).get() : nullptr; }
  const List* list() const {
    return is<std::shared_ptr<const List>>() ? std::get<std::shared_ptr<const List>>(data_).get() : nullptr;
  }
  const Dict* dict() const {
    return is<std::shared_ptr<const Dict>>() ? std::get<std::shared_ptr<const Dict>>(data_).get() : nullptr;
  }
  bool is_integer() const { return is<int64_t>() || is<bool>(); }  // a bool is a number, as in Python
  bool is_number() const { return is_integer() || is<double>(); }
  int64_t integer() const { return is<bool>() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double number() const { return is<double>() ? std::get<double>(data_) : static_cast<double>(integer()); }

  bool truth() const;
  const char* type_name() const;  // as Python calls it
  int depth() const;
  /// About the bytes that it takes to write the value. A list that is in it twice counts twice, so that the weight
  /// bounds the work of walking through the value. Never much more than 2^40.
  int64_t weight() const;

 private:
  Data data_;
};

bool equal(const Value& a, const Value& b);

/// As Python's str() and repr(). Undefined gives "". Throw DataError for functions and methods, which Python writes
/// with their addresses.
std::string str(const Value& value);
std::string repr(const Value& value);

struct JsonStyle {
  int64_t indent = -1;  // negative: on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
  bool ascii = false;
};
/// As Python's json.dumps(). Throws DataError for what is no JSON.
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace attune::jinja

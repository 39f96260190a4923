#pragma once
// The filters, tests and methods that templates can use. All of them throw DataError for arguments that they do not
// take, with a message that names the filter, test or method.

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/text/jinja/value.h"

namespace attune::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at this place or with this name; null where there is none.
  const Value* find(size_t place, std::string_view name) const;
  bool flag(size_t place, std::string_view name, bool otherwise) const;
  int64_t integer(size_t place, std::string_view name, int64_t otherwise) const;
  std::string text(size_t place, std::string_view name, std::string_view otherwise) const;
  /// Throws unless there are at least `least` arguments and each is one of `names`, in that order.
  void check(std::string_view what, size_t least, std::initializer_list<std::string_view> names) const;
};

/// Counts what a rendering costs.
class Meter {
 public:
  explicit Meter(int64_t most) : left_(most) {}
  /// Throws DataError when there is no more left.
  void charge(int64_t work);
  void charge(size_t work) { charge(static_cast<int64_t>(work)); }
  void charge_items(size_t count) { charge(count * 32); }

 private:
  int64_t left_;
};

const std::set<std::string_view>& filter_names();
const std::set<std::string_view>& test_names();
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter);

/// Calls a method of a text or a dict; nothing where the value has no such method.
std::optional<Value> call_method(const Value& object, std::string_view name, const Arguments& arguments, Meter& meter);

/// object.name and object[name]: undefined where there is none. Throws for what is undefined itself.
Value attribute(const Value& object, std::string_view name);
Value subscript(const Value& object, const Value& index, Meter& meter);
bool contains(const Value& container, const Value& item, Meter& meter);
/// Less than, for numbers, texts and lists. Throws for others.
bool less(const Value& a, const Value& b);
/// The items of a list, the keys of a dict, the characters of a text; none of what is undefined. Throws for others.
std::vector<Value> items_of(const Value& value, Meter& meter);
int64_t length_of(const Value& value);

std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);
/// Without the white space, or without the characters of `characters`, at the begin and at the end.
std::string strip(std::string_view text, const Value* characters, bool at_begin, bool at_end);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to, int64_t most, Meter& meter);
std::string uppercase(std::string_view text);   // ASCII
std::string capitalize(std::string_view text);  // the first letter, ASCII; all others in lower case

}  // namespace attune::jinja

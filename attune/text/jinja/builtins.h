#pragma once
// The filters, tests, methods and functions that templates can use. They throw DataError, with a message that names the
// filter, test or method, for values and for arguments that they do not take.

#include <array>
#include <optional>
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
  /// Throws unless there are at least `least` arguments and each is one of `names`, in that order. An argument that
  /// cannot be given by its name is "" there.
  void check(std::string_view what, size_t least, const std::vector<std::string_view>& names) const;
};

/// What a rendering may cost. A unit of work is an expression, a byte of a text or 1/32 of an item that is built, so
/// that it bounds time and memory.
inline constexpr int64_t kMostWork = int64_t{1} << 26;

/// Counts what a rendering costs.
class Meter {
 public:
  /// Throws DataError when there is no more left.
  void charge(int64_t work);
  void charge(size_t work) { charge(static_cast<int64_t>(work)); }
  void charge_items(size_t count) { charge(count * 32); }

 private:
  int64_t left_ = kMostWork;
};

bool has_filter(std::string_view name);
bool has_test(std::string_view name);
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter);

/// Calls a method of a text or a dict; nothing where the value has no such method.
std::optional<Value> call_method(const Value& object, std::string_view name, const Arguments& arguments, Meter& meter);

/// Numbers as Python's range() gives them, at most 100,000.
Value range(const Arguments& arguments, Meter& meter);
/// strftime_now(format): `now`, in seconds since 1970, as local time.
Value time_text(const Arguments& arguments, int64_t now);

/// str() of the value, for the output.
std::string written(const Value& value, Meter& meter);

/// object.name. For a dict this is its method with the name, else the value of the key; methods that would change the
/// dict are undefined, even if it has such a key. Returns undefined if there is nothing. Throws if the object itself is
/// undefined.
Value attribute(const Value& object, std::string_view name);
/// object["name"], and the names in paths of filters: the same, but a dict's key comes before its method.
Value named_item(const Value& object, std::string_view name);
/// object[index]: undefined where there is none. Throws for what is undefined itself.
Value subscript(const Value& object, const Value& index, Meter& meter);
/// object[begin:end:step] of a text or a list; None stands for what is left out.
Value slice(const Value& object, const std::array<Value, 3>& bounds, Meter& meter);
bool contains(const Value& container, const Value& item, Meter& meter);
/// Less than, for numbers, texts and lists. Throws for others.
bool less(const Value& a, const Value& b);
/// The items of a list, the keys of a dict, the characters of a text; none of what is undefined. Throws for others.
std::vector<Value> items_of(const Value& value, Meter& meter);
int64_t length_of(const Value& value);

std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);
/// Without the white space, or without the characters of `characters`, at the beginning and at the end.
std::string strip(std::string_view text, const Value* characters, bool at_begin, bool at_end);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to, int64_t most, Meter& meter);
std::string uppercase(std::string_view text);   // ASCII
std::string capitalize(std::string_view text);  // the first letter, ASCII; all others in lower case

}  // namespace attune::jinja

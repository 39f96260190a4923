#include "attune/text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "attune/base/fail.h"

namespace attune::jinja {
namespace {

Value repeated(const std::string& text, int64_t count, Meter& meter) {
  count = text.empty() ? 0 : std::max(count, int64_t{0});
  if (count > kMostWork) fail<DataError>("a text is repeated {} times", count);
  meter.charge(static_cast<int64_t>(text.size()) * count);
  std::string result;
  for (int64_t i = 0; i < count; ++i) result += text;
  return Value(std::move(result));
}

Value real_arithmetic(std::string_view operation, double x, double y) {
  if (operation == "+") return Value(x + y);
  if (operation == "-") return Value(x - y);
  if (operation == "*") return Value(x * y);
  if (operation == "**") return Value(std::pow(x, y));
  if (y == 0) fail<DataError>("a division by 0");
  if (operation == "/") return Value(x / y);
  if (operation == "//") return Value(std::floor(x / y));
  const double rest = std::fmod(x, y);
  return Value(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

Value arithmetic(std::string_view operation, const Value& a, const Value& b) {
  if (operation == "/" || a.is<double>() || b.is<double>()) return real_arithmetic(operation, a.number(), b.number());
  const int64_t x = a.integer(), y = b.integer();
  int64_t result = 0;
  bool overflow = false;
  if (operation == "+")
    overflow = __builtin_add_overflow(x, y, &result);
  else if (operation == "-")
    overflow = __builtin_sub_overflow(x, y, &result);
  else if (operation == "*")
    overflow = __builtin_mul_overflow(x, y, &result);
  else if (operation == "**") {
    if (y < 0) return Value(std::pow(a.number(), b.number()));
    result = 1;
    for (int64_t i = 0; i < y && result != 0 && !overflow; ++i) {
      if (i > 64 && (result == 1 || result == -1)) fail<DataError>("an exponent is too large");
      overflow = __builtin_mul_overflow(result, x, &result);
    }
  } else {
    if (y == 0) fail<DataError>("a division by 0");
    if (y == -1) return operation == "%" ? Value(int64_t{0}) : unary("-", a);
    const bool round_down = x % y != 0 && (x < 0) != (y < 0);  // towards minus infinity, as Python
    result = operation == "//" ? x / y - (round_down ? 1 : 0) : x % y + (round_down ? y : 0);
  }
  if (overflow) fail<DataError>("a number is too large");
  return Value(result);
}

}  // namespace

Value unary(std::string_view operation, const Value& value) {
  if (operation == "not") return Value(!value.truth());
  if (!value.is_number()) fail<DataError>("{} needs a number, found {}", operation, value.type_name());
  if (operation == "+") return value;
  if (value.is<double>()) return Value(-value.number());
  if (value.integer() == INT64_MIN) fail<DataError>("a number is too large");
  return Value(-value.integer());
}

Value binary(std::string_view operation, const Value& a, const Value& b, Meter& meter) {
  if (operation == "~") return Value(written(a, meter) + written(b, meter));
  if (a.is_number() && b.is_number()) return arithmetic(operation, a, b);
  if (operation == "+" && a.text() != nullptr && b.text() != nullptr)
    return Value(written(a, meter) + written(b, meter));
  if (operation == "+" && a.list() != nullptr && b.list() != nullptr) {
    std::vector<Value> items = items_of(a, meter);
    const std::vector<Value> more = items_of(b, meter);
    items.insert(items.end(), more.begin(), more.end());
    return Value::list(std::move(items), a.list()->is_tuple);
  }
  if (operation == "*" && a.text() != nullptr && b.is_integer()) return repeated(*a.text(), b.integer(), meter);
  if (operation == "*" && b.text() != nullptr && a.is_integer()) return repeated(*b.text(), a.integer(), meter);
  for (const Value* side : {&a, &b})
    if (const auto* undefined = side->get<Undefined>()) fail<DataError>("{} is undefined", undefined->name);
  fail<DataError>("{} is not supported between {} and {}", operation, a.type_name(), b.type_name());
}

bool compare(std::string_view operation, const Value& a, const Value& b, Meter& meter) {
  if (operation == "in") return contains(b, a, meter);
  if (operation == "not in") return !contains(b, a, meter);
  meter.charge(std::min(a.weight(), b.weight()));
  if (operation == "==") return equal(a, b);
  if (operation == "!=") return !equal(a, b);
  if (operation == "<") return less(a, b);
  if (operation == ">") return less(b, a);
  return operation == "<=" ? !less(b, a) : !less(a, b);
}

}  // namespace attune::jinja

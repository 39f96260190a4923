// Tests, as Jinja's.

#include <algorithm>
#include <functional>
#include <map>

#include "attune/base/fail.h"
#include "attune/text/jinja/builtins.h"
#include "attune/text/unicode.h"

namespace attune::jinja {
namespace {

struct Test {
  std::function<bool(const Value& value, const Arguments& arguments, Meter& meter)> apply;
  std::vector<std::string_view> names = {};  // of its arguments
  size_t least = 0;                          // so many of them have to be there
};

Test comparing(bool (*compare)(const Value&, const Value&)) {
  const auto apply = [compare](const Value& value, const Arguments& arguments, Meter& meter) {
    const Value& other = arguments.positional[0];
    meter.charge(std::min(value.weight(), other.weight()));
    return compare(value, other);
  };
  return {apply, {""}, 1};
}

// The remainder of an integer with the sign of Python's %.
int64_t remainder(const Value& value, int64_t divisor) {
  if (!value.is_integer()) fail<DataError>("a test needs an integer, found {}", value.type_name());
  if (divisor == 0 || divisor == -1) fail<DataError>("a test cannot divide by {}", divisor);
  const int64_t rest = value.integer() % divisor;
  return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
}

// Whether the text is what to_case() makes of it.
bool is_in_case(const Value& value, Meter& meter, std::string (*to_case)(std::string_view)) {
  const std::string text = written(value, meter);
  return text == to_case(text);
}

const std::map<std::string_view, Test>& tests() {
  static const Test kEqual = comparing(equal);
  static const Test kIterable{[](auto& v, auto&, auto&) {
    return v.text() != nullptr || v.list() != nullptr || v.dict() != nullptr || v.template is<Undefined>();
  }};
  static const Test kCallable{[](auto& v, auto&, auto&) {  // what is undefined too, as in Jinja
    return v.template is<Function>() || v.template is<const Macro*>() ||
           v.template is<std::shared_ptr<const Method>>() || v.template is<Undefined>();
  }};
  static const std::map<std::string_view, Test> all = {
      {"defined", {[](auto& v, auto&, auto&) { return !v.template is<Undefined>(); }}},
      {"undefined", {[](auto& v, auto&, auto&) { return v.template is<Undefined>(); }}},
      {"none", {[](auto& v, auto&, auto&) { return v.template is<None>(); }}},
      {"string", {[](auto& v, auto&, auto&) { return v.text() != nullptr; }}},
      {"mapping", {[](auto& v, auto&, auto&) { return v.dict() != nullptr; }}},
      {"sequence", kIterable},
      {"iterable", kIterable},
      {"number", {[](auto& v, auto&, auto&) { return v.is_number(); }}},
      {"integer", {[](auto& v, auto&, auto&) { return v.template is<int64_t>(); }}},
      {"float", {[](auto& v, auto&, auto&) { return v.template is<double>(); }}},
      {"boolean", {[](auto& v, auto&, auto&) { return v.template is<bool>(); }}},
      {"true", {[](auto& v, auto&, auto&) { return v.template is<bool>() && v.truth(); }}},
      {"false", {[](auto& v, auto&, auto&) { return v.template is<bool>() && !v.truth(); }}},
      {"callable", kCallable},
      {"even", {[](auto& v, auto&, auto&) { return remainder(v, 2) == 0; }}},
      {"odd", {[](auto& v, auto&, auto&) { return remainder(v, 2) == 1; }}},
      {"divisibleby", {[](auto& v, auto& a, auto&) { return remainder(v, a.integer(0, "num", 0)) == 0; }, {"num"}, 1}},
      {"equalto", kEqual},
      {"eq", kEqual},
      {"ne", comparing([](const Value& a, const Value& b) { return !equal(a, b); })},
      {"lt", comparing(less)},
      {"gt", comparing([](const Value& a, const Value& b) { return less(b, a); })},
      {"le", comparing([](const Value& a, const Value& b) { return !less(b, a); })},
      {"ge", comparing([](const Value& a, const Value& b) { return !less(a, b); })},
      {"in", {[](auto& v, auto& a, auto& m) { return contains(*a.find(0, "seq"), v, m); }, {"seq"}, 1}},
      {"lower", {[](auto& v, auto&, auto& m) { return is_in_case(v, m, lowercase); }}},
      {"upper", {[](auto& v, auto&, auto& m) { return is_in_case(v, m, uppercase); }}},
  };
  return all;
}

}  // namespace

bool has_test(std::string_view name) {
  return tests().contains(name);
}

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Meter& meter) {
  meter.charge(int64_t{1});
  const Test& test = tests().at(name);
  arguments.check(name, test.least, test.names);
  return test.apply(value, arguments, meter);
}

}  // namespace attune::jinja

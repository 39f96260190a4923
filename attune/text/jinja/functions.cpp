// range() and strftime_now().

#include <array>
#include <ctime>

#include "attune/base/fail.h"
#include "attune/text/jinja/builtins.h"

namespace attune::jinja {

Value range(const Arguments& given, Meter& meter) {
  given.check("range", 1, {"start", "stop", "step"});
  const bool one = given.positional.size() == 1;
  const int64_t begin = one ? 0 : given.integer(0, "start", 0), end = given.integer(one ? 0 : 1, "stop", 0),
                step = given.integer(2, "step", 1);
  constexpr int64_t kMost = 100000;  // as Jinja's sandbox
  if (step == 0) fail<DataError>("range: step is 0");
  std::vector<Value> numbers;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(numbers.size()) >= kMost) fail<DataError>("range: has more than {} numbers", kMost);
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  meter.charge_items(numbers.size());
  return Value::list(std::move(numbers));
}

Value time_text(const Arguments& given, int64_t now) {
  given.check("strftime_now", 1, {"format"});
  const std::string format = given.text(0, "format", "");
  if (format.size() > 128) fail<DataError>("strftime_now: the format has more than 128 bytes");
  const std::time_t time = static_cast<std::time_t>(now);
  std::tm local{};
  ::localtime_r(&time, &local);
  std::array<char, 1024> text;
  return Value(std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &local)));
}

}  // namespace attune::jinja

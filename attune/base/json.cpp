#include "attune/base/json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"

namespace attune {
namespace {

// Characters that end a line for Python's splitlines() and others, and that JSON allows in strings as they are.
constexpr std::pair<std::string_view, const char*> kLineEnds[] = {
    {"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}};

// Escapes these characters in a text of JSON, where only strings can have them.
std::string with_escaped_line_ends(std::string text) {
  constexpr const char* kFirstBytes = "\xC2\xE2";
  std::string line;
  size_t done = 0;
  for (size_t at = text.find_first_of(kFirstBytes); at != std::string::npos;
       at = text.find_first_of(kFirstBytes, at + 1)) {
    for (const auto& [bytes, escape] : kLineEnds) {
      if (text.compare(at, bytes.size(), bytes) != 0) continue;
      line.append(text, done, at - done).append(escape);
      done = at + bytes.size();
    }
  }
  if (done == 0) return text;
  line.append(text, done);
  return line;
}

std::string dump(const Json& value, int indent) {
  return with_escaped_line_ends(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

// Reads a text without building anything, and throws Error for what parse_json() refuses. nlohmann's parser with a
// callback could do both at once, but looks through a whole list again at the end of each object in it.
template <class Error, class Value>
class Checker final : public nlohmann::json_sax<Value> {
 public:
  Checker(const std::string& where, const JsonLimits& limits) : where_(where), limits_(limits) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(typename Value::number_integer_t) override { return count(); }
  bool number_unsigned(typename Value::number_unsigned_t number) override {
    if (number > INT64_MAX) refuse_large(std::to_string(number));
    return count();
  }
  bool number_float(typename Value::number_float_t, const std::string& text) override {
    if (text.find_first_of(".eE") == std::string::npos) refuse_large(text);
    return count();
  }
  bool string(std::string&) override { return count(); }
  bool binary(typename Value::binary_t&) override { return count(); }
  bool start_object(size_t) override { return begin(); }
  bool end_object() override { return end(); }
  bool start_array(size_t) override { return begin(); }
  bool end_array() override { return end(); }

  bool key(std::string& key) override {
    std::set<std::string>& keys = open_.back();
    const auto [known, is_new] = keys.insert(std::move(key));
    if (!is_new) fail<Error>("{}: JSON has key {} twice", where_, in_quotes(*known));
    if (keys.size() > limits_.keys) fail<Error>("{}: JSON has more than {} keys in one object", where_, limits_.keys);
    return count();
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const typename Value::parse_error*>(&error) != nullptr)
      fail<Error>("{}: is not valid JSON at byte {}", where_, byte);
    fail<Error>("{}: is not valid JSON: {}", where_, error.what());  // a number that no double holds
  }

 private:
  bool count() {
    if (++values_ > limits_.values) fail<Error>("{}: JSON has more than {} values", where_, limits_.values);
    return true;
  }
  void refuse_large(const std::string& integer) {
    if (limits_.exact_integers)
      fail<Error>("{}: the integer {} is beyond 64 bits with a sign", where_, cut_text(integer, 40));
  }
  bool begin() {
    if (open_.size() >= static_cast<size_t>(limits_.depth))
      fail<Error>("{}: JSON is nested more than {} levels deep", where_, limits_.depth);
    open_.emplace_back();
    return count();
  }
  bool end() {
    open_.pop_back();
    return count();
  }

  const std::string& where_;
  const JsonLimits& limits_;
  size_t values_ = 0;
  std::vector<std::set<std::string>> open_;  // the keys of each object that is open; a list has no keys
};

}  // namespace

std::string show(const Json& value) {
  return dump(value, -1);
}

std::string show_indented(const Json& value) {
  return dump(value, 2);
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 200;
  const bool cut = text.size() > kMost;
  const std::string shown = show(Json(cut_text(text, kMost)));
  return cut ? shown + "..." : shown;
}

template <class Error>
void refuse_nul(std::string_view text, const std::string& where) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail<Error>("{}: is not valid JSON at byte {}", where, nul + 1);
}

template void refuse_nul<FileError>(std::string_view, const std::string&);
template void refuse_nul<DataError>(std::string_view, const std::string&);

template <class Error, class Value>
Value parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  refuse_nul<Error>(text, where);
  Checker<Error, Value> checker(where, limits);
  Value::sax_parse(text.begin(), text.end(), &checker);
  return Value::parse(text.begin(), text.end());
}

template Json parse_json<FileError, Json>(std::string_view, const std::string&, const JsonLimits&);
template Json parse_json<DataError, Json>(std::string_view, const std::string&, const JsonLimits&);
template nlohmann::json parse_json<FileError, nlohmann::json>(std::string_view, const std::string&, const JsonLimits&);

}  // namespace attune

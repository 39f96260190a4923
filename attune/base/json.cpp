#include "attune/base/json.h"

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

// JSON's text with those of its strings escaped.
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
  size_t values = 0;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, typename Value::parse_event_t event, const Value& parsed) {
    using Event = typename Value::parse_event_t;
    if (++values > limits.values) fail<Error>("{}: JSON has more than {} values", where, limits.values);
    if ((event == Event::object_start || event == Event::array_start) && depth >= limits.depth)
      fail<Error>("{}: JSON is nested more than {} levels deep", where, limits.depth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event != Event::key) return true;
    const auto& key = parsed.template get_ref<const std::string&>();
    if (!keys.back().insert(key).second) fail<Error>("{}: JSON has key {} twice", where, in_quotes(key));
    if (keys.back().size() > limits.keys)
      fail<Error>("{}: JSON has more than {} keys in one object", where, limits.keys);
    return true;
  };
  refuse_nul<Error>(text, where);
  try {
    return Value::parse(text.begin(), text.end(), check);
  } catch (const typename Value::parse_error& error) {
    fail<Error>("{}: is not valid JSON at byte {}", where, error.byte);
  } catch (const typename Value::exception& error) {  // a number that no double holds
    fail<Error>("{}: is not valid JSON: {}", where, error.what());
  }
}

template Json parse_json<FileError, Json>(std::string_view, const std::string&, const JsonLimits&);
template Json parse_json<DataError, Json>(std::string_view, const std::string&, const JsonLimits&);
template nlohmann::json parse_json<FileError, nlohmann::json>(std::string_view, const std::string&, const JsonLimits&);

}  // namespace attune

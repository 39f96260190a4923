#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "attune/base/error.h"

namespace attune {

using Json = nlohmann::ordered_json;

/// Returns a value as one line of JSON: U+0085, U+2028 and U+2029, which end a line for some programs, are escaped.
/// Does not throw for strings that are not valid UTF-8.
std::string show(const Json& value);
/// The same on several lines, for people to read: two spaces for each level.
std::string show_indented(const Json& value);

/// The text in double quotes on one line, control characters escaped, cut when very long: a hostile name in an error.
std::string in_quotes(std::string_view text);

/// Limits for JSON that may be hostile.
struct JsonLimits {
  int depth = 64;
  size_t keys = 4096;           // of one object: Json looks keys up one by one, so that many would take quadratic time
  size_t values = SIZE_MAX;     // of the whole text, keys and ends of lists and objects included
  bool exact_integers = false;  // refuses integers that int64_t cannot hold: a reader would round them
};

/// Throws Error that begins with `where` for a text with a NUL, which nlohmann's parsers would take for its end. Error
/// may be FileError or DataError.
template <class Error>
void refuse_nul(std::string_view text, const std::string& where);

/// Parses a text and checks the limits before anything is built. Throws Error that begins with `where`: for a text that
/// is not JSON, with the byte, for a key that one object has twice, and for more than the limits allow. The template
/// arguments may be <FileError, Json>, <FileError, nlohmann::json>, which sorts keys, and <DataError, Json>.
template <class Error = FileError, class Value = Json>
Value parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});

}  // namespace attune

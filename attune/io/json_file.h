#pragma once
// JSON from files that may be hostile: size, depth and the number of keys are limited before anything is built.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "attune/base/fields.h"
#include "attune/base/json.h"

namespace attune {

/// Throws FileError that begins with `where` and names the byte: not JSON, the same key twice in one object, more than
/// 64 levels deep or more than 4096 keys in one object.
Json parse_json(std::string_view text, const std::string& where);

/// The same for a whole file of at most `max_bytes`.
Json read_json_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 20);

/// Writes the file whole or not at all, indented by two spaces. Throws FileError.
void write_json_file(const std::filesystem::path& path, const Json& json);

/// The text in double quotes on one line, control characters escaped, cut when very long: a hostile name in an error.
std::string in_quotes(std::string_view text);

}  // namespace attune

#pragma once
// JSON in files.

#include <cstdint>
#include <filesystem>

#include "attune/base/fields.h"
#include "attune/base/json.h"

namespace attune {

/// parse_json() of a whole file, of at most `max_bytes`.
Json read_json_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 20);

/// Writes the file whole or not at all, indented by two spaces. Throws FileError.
void write_json_file(const std::filesystem::path& path, const Json& json);

}  // namespace attune

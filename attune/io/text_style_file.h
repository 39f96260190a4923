#pragma once

#include <filesystem>
#include <optional>

#include "attune/text/text_style.h"

namespace attune {

/// How the source side of the training text is written, in a folder of a model that translates.
inline constexpr const char* kSourceTextFile = "source_text.json";

/// Writes the file whole or not at all. Throws FileError.
void write_source_text(const std::filesystem::path& folder, const TextStyle& style);
/// None where the folder has no such file. Throws FileError or ConfigError naming the file.
std::optional<TextStyle> read_source_text(const std::filesystem::path& folder);

}  // namespace attune

#pragma once
// Models in llama.cpp's format, which Attune does not read.

#include <filesystem>

namespace attune {

/// Throws FileError that says what is expected instead where the file begins as GGUF does. Does nothing for any other
/// file, or where there is none.
void refuse_gguf(const std::filesystem::path& path);

}  // namespace attune

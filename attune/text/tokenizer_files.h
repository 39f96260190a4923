#pragma once
// The tokenizers of a folder: tokenizer.model or tokenizer.json for all text, or one for each side of a translation,
// source_tokenizer.* and target_tokenizer.*.

#include <filesystem>
#include <memory>
#include <string>

#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;  // one object where one vocabulary serves both sides
};

struct TokenizerFiles {
  std::filesystem::path source, target;  // one file where one vocabulary serves both sides
};

/// Returns the tokenizer for all text, or an empty path. Throws FileError when there are two.
std::filesystem::path find_tokenizer(const std::filesystem::path& folder);

/// Returns the tokenizers of both sides. Throws FileError when a side has none, or two.
TokenizerFiles find_tokenizers(const std::filesystem::path& folder);
TokenizerPair load_tokenizers(const TokenizerFiles& files);
inline TokenizerPair load_tokenizers(const std::filesystem::path& folder) {
  return load_tokenizers(find_tokenizers(folder));
}

/// Writes one file where both are one object, and removes the other tokenizers that the folder had. Throws FileError.
void save_tokenizers(const std::filesystem::path& folder, const Tokenizer& source, const Tokenizer& target);

}  // namespace attune

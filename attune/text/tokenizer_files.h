#pragma once
// The tokenizers of a folder: one for all text, or one for each side of a translation.
//
// Attune writes tokenizer.model or vocabulary.json, or source_tokenizer.model, target_vocabulary.json and the like.
// Folders of earlier versions have tokenizer.json in place of vocabulary.json. Folders from Hugging Face's hub have
// tokenizer.json, or other files, see docs/hugging-face.md.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;  // one object where one vocabulary serves both sides
};

struct TokenizerFiles {
  std::filesystem::path source, target;  // one file where one vocabulary serves both sides
};

inline constexpr std::string_view kTokenizerFileNames =
    "tokenizer.json, tokenizer.model, vocabulary.json, sentencepiece.bpe.model, spiece.model, vocab.json or vocab.txt";

/// The names that save_tokenizers() may give to a tokenizer file of Attune's own.
std::vector<std::string> own_tokenizer_files();
/// These, and the names of all files that tokenizers of the Hugging Face hub write, their settings and chat templates
/// included.
std::vector<std::string> all_tokenizer_files();

/// Returns the tokenizer for all text, or an empty path. A tokenizer.json of Hugging Face's format comes first. Throws
/// FileError when there are two of Attune's own.
std::filesystem::path find_tokenizer(const std::filesystem::path& folder);

/// Returns the tokenizers of both sides. Throws FileError when a side has none, or two.
TokenizerFiles find_tokenizers(const std::filesystem::path& folder);
TokenizerPair load_tokenizers(const TokenizerFiles& files);
inline TokenizerPair load_tokenizers(const std::filesystem::path& folder) {
  return load_tokenizers(find_tokenizers(folder));
}

/// Throws ConfigError that begins with `name` unless a folder can have this tokenizer beside another one.
void check_can_be_one_of_two(std::string_view name, const Tokenizer& tokenizer);

/// Writes one file where both are one object, and removes the other tokenizers that the folder had. Throws FileError,
/// and ConfigError for two of which one cannot stand beside the other.
void save_tokenizers(const std::filesystem::path& folder, const Tokenizer& source, const Tokenizer& target);

}  // namespace attune

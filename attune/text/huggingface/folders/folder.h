#pragma once
// Finds and reads what a folder from Hugging Face's hub has for a tokenizer.

#include <filesystem>
#include <memory>
#include <string_view>

#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// A tokenizer.json, with what tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it say, and
/// the class that they or config.json name. Throws FileError.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view bytes, const std::filesystem::path& file);

/// A file that its name tells: vocab.txt (WordPiece), vocab.json with merges.txt beside it (byte-level BPE), and
/// sentencepiece.bpe.model, spiece.model or tokenizer.model with tokenizer_config.json beside it. Returns null for
/// other names. Throws FileError.
std::unique_ptr<Tokenizer> load_by_file_name(const std::filesystem::path& file);

}  // namespace attune::huggingface

#pragma once
// Finds and reads what a folder from Hugging Face's hub has for a tokenizer.

#include <filesystem>
#include <memory>
#include <string_view>

#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// Reads a tokenizer.json, with what tokenizer_config.json, special_tokens_map.json and added_tokens.json beside it
/// say, and with the class that they or config.json name. Throws FileError.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view bytes, const std::filesystem::path& file);

/// Reads a file whose name tells what it is: vocab.txt (WordPiece), vocab.json with merges.txt beside it (byte-level
/// BPE) or with source.spm and target.spm (Marian), sentencepiece.bpe.model, spiece.model, and tokenizer.model with a
/// class in the tokenizer_config.json beside it. Returns null for any other file. Throws FileError.
std::unique_ptr<Tokenizer> load_by_file_name(const std::filesystem::path& file);

}  // namespace attune::huggingface

#pragma once
// The special tokens that tokenizer_config.json and special_tokens_map.json name.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"

namespace attune::huggingface {

/// What the files beside a tokenizer say about it.
struct TokenizerConfig {
  nlohmann::json values = nlohmann::json::object();  // tokenizer_config.json
  std::string pad, unk, bos, eos, mask, cls, sep;    // "": not named
  std::vector<AddedToken> added;                     // by id, of "added_tokens_decoder" or added_tokens.json
  std::vector<std::filesystem::path> files;          // those that are there

  bool flag(const char* name, bool otherwise) const;
};

/// Reads the files beside `tokenizer`; what is missing is empty. Throws FileError.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& tokenizer);

}  // namespace attune::huggingface

#pragma once
// The special tokens that tokenizer_config.json and special_tokens_map.json name, and the tokens that a folder adds.

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// Special tokens by what they are for; "" where there is none.
struct SpecialNames {
  std::string pad, unk, bos, eos, mask, cls, sep;
};

/// What the files call each of them, and where it is kept.
struct SpecialToken {
  const char* field;
  std::string SpecialNames::*name;
  int32_t SpecialIds::*id;
};
inline constexpr std::array<SpecialToken, 7> kSpecialTokens = {{
    {"pad_token", &SpecialNames::pad, &SpecialIds::pad},
    {"unk_token", &SpecialNames::unk, &SpecialIds::unk},
    {"bos_token", &SpecialNames::bos, &SpecialIds::bos},
    {"eos_token", &SpecialNames::eos, &SpecialIds::eos},
    {"mask_token", &SpecialNames::mask, &SpecialIds::mask},
    {"cls_token", &SpecialNames::cls, &SpecialIds::cls},
    {"sep_token", &SpecialNames::sep, &SpecialIds::sep},
}};

/// Names and bytes of the files with a tokenizer's settings.
using SettingsFiles = std::vector<std::pair<std::string, std::string>>;

/// What the files beside a tokenizer say about it.
struct TokenizerConfig {
  nlohmann::json values = nlohmann::json::object();  // tokenizer_config.json
  nlohmann::json map = nlohmann::json::object();     // special_tokens_map.json
  SpecialNames names = {};
  std::vector<AddedToken> added = {};             // by id, of "added_tokens_decoder", else of added_tokens.json
  std::vector<std::filesystem::path> files = {};  // those that are there

  bool flag(const char* name, bool otherwise) const;
  /// Of tokenizer_config.json; what is no text counts as missing.
  std::string text(const char* name, const char* otherwise) const;
  /// The languages of a translation model: "additional_special_tokens". Throws FileError, which begins with `file`, if
  /// there are none.
  std::vector<std::string> languages(const std::string& file) const;
  /// "tokenizer_class" without "Fast"; "" where there is none.
  std::string tokenizer_class() const;
  /// Reads `files`. Throws FileError.
  SettingsFiles read_files() const;
};

/// Reads these files of a folder; what is missing is empty. added_tokens.json is read where asked for, by tokenizers
/// without a tokenizer.json. Throws FileError.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder, bool added_tokens_json = false);

}  // namespace attune::huggingface

#pragma once
// What tokenizer_config.json, special_tokens_map.json and added_tokens.json say: settings, special tokens, and tokens
// that a folder adds.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/huggingface/settings_files.h"
#include "attune/text/huggingface/special_tokens.h"

namespace attune::huggingface {

/// What the files beside a tokenizer say about it. As in transformers, special_tokens_map.json goes before
/// tokenizer_config.json, and neither it nor added_tokens.json counts where tokenizer_config.json has
/// "added_tokens_decoder".
struct TokenizerConfig {
  nlohmann::json values = nlohmann::json::object();  // tokenizer_config.json
  nlohmann::json map = nlohmann::json::object();     // special_tokens_map.json
  bool has_decoder = false;                          // "added_tokens_decoder" is there
  SpecialNames names = {};
  std::vector<AddedToken> added = {};  // by id, of "added_tokens_decoder", else of added_tokens.json
  std::vector<AddedToken> named = {};  // those of `names`, then other fields that end with "_token"; all special
  std::vector<AddedToken> extra = {};  // "extra_special_tokens", else "additional_special_tokens"
  std::filesystem::path folder = {};
  std::string prefix = {};                        // of the files' names
  std::vector<std::filesystem::path> files = {};  // those that are there, of settings and templates of chats

  /// Of tokenizer_config.json. Throws FileError for what is neither true nor false.
  bool flag(const char* name, bool otherwise) const;
  /// Of tokenizer_config.json; what is no text counts as missing.
  std::string text(const char* name, const char* otherwise) const;
  /// Whether a file that counts has this field of a special token; null says that there is no such token.
  bool says(const char* field) const;
  /// The languages of a translation model: "additional_special_tokens". Throws FileError, which begins with `file`, if
  /// there are none.
  std::vector<std::string> languages(const std::string& file) const;
  /// "tokenizer_class" without "Fast"; "" where there is none.
  std::string tokenizer_class() const;
  /// Reads `files`. Throws FileError.
  SettingsFiles read_files() const;
  /// Returns `settings` with a tokenizer_config.json that has this class in place of another, or of none. It also names
  /// the special tokens of `names` that no file has.
  SettingsFiles with_class(SettingsFiles settings, const std::string& name) const;
};

/// The object of a file of settings; an empty one where there is no file. Throws FileError.
nlohmann::json read_settings(const std::filesystem::path& file);

/// Reads these files of a folder, those with the prefix where there are any; what is missing is empty. Throws
/// FileError.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder, const std::string& prefix = "");

}  // namespace attune::huggingface

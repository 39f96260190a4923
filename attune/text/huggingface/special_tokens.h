#pragma once
// The special tokens that tokenizer_config.json and special_tokens_map.json name, and the tokens that a folder adds.

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// Special tokens by what they are for; "" where there is none.
struct SpecialNames {
  std::string pad, unk, bos, eos, mask, cls, sep;
};

/// What the files call each of them, and where it is kept; in the order in which transformers gives new ones their ids.
struct SpecialToken {
  const char* field;
  std::string SpecialNames::*name;
  int32_t SpecialIds::*id;
};
inline constexpr std::array<SpecialToken, 7> kSpecialTokens = {{
    {"bos_token", &SpecialNames::bos, &SpecialIds::bos},
    {"eos_token", &SpecialNames::eos, &SpecialIds::eos},
    {"unk_token", &SpecialNames::unk, &SpecialIds::unk},
    {"sep_token", &SpecialNames::sep, &SpecialIds::sep},
    {"pad_token", &SpecialNames::pad, &SpecialIds::pad},
    {"cls_token", &SpecialNames::cls, &SpecialIds::cls},
    {"mask_token", &SpecialNames::mask, &SpecialIds::mask},
}};

/// The files with settings.
inline constexpr std::array<const char*, 3> kSettingsFiles = {"tokenizer_config.json", "special_tokens_map.json",
                                                              "added_tokens.json"};

/// The file with the template of chats, and the one with that of chats with tools.
inline constexpr const char* kChatTemplate = "chat_template.jinja";
inline constexpr const char* kToolTemplate = "additional_chat_templates/tool_use.jinja";

/// Names and bytes of the files with a tokenizer's settings. A name is the path from the tokenizer's folder.
using SettingsFiles = std::vector<std::pair<std::string, std::string>>;

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
  /// Returns `settings` with a tokenizer_config.json that has this class in place of another, or of none, and all of
  /// `names`.
  SettingsFiles with_class(SettingsFiles settings, const std::string& name) const;
};

/// The object of a file of settings; an empty one where there is no file. Throws FileError.
nlohmann::json read_settings(const std::filesystem::path& file);

/// What is before "tokenizer.json" in the name of a file, and so in the names of its settings: "source_" and "target_"
/// where a folder has two.
std::string settings_prefix(const std::filesystem::path& file);

/// Reads these files of a folder, those with the prefix where there are any; what is missing is empty. Throws
/// FileError.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder, const std::string& prefix = "");

/// Writes one of SettingsFiles beside a tokenizer; makes the folder that its name may have. Throws FileError.
void write_settings_file(const std::filesystem::path& folder, const std::string& name, std::string_view bytes);

}  // namespace attune::huggingface

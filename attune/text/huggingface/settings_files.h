#pragma once
// The files beside a tokenizer, by their names.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::huggingface {

/// The files with settings.
inline constexpr std::array<const char*, 3> kSettingsFiles = {"tokenizer_config.json", "special_tokens_map.json",
                                                              "added_tokens.json"};

/// The file with the template of chats, and the one with that of chats with tools.
inline constexpr const char* kChatTemplate = "chat_template.jinja";
inline constexpr const char* kToolTemplate = "additional_chat_templates/tool_use.jinja";

/// Names and bytes of the files with a tokenizer's settings. A name is the path from the tokenizer's folder.
using SettingsFiles = std::vector<std::pair<std::string, std::string>>;

/// What is before "tokenizer.json" in the name of a file, and so in the names of its settings: "source_" and "target_"
/// where a folder has two.
std::string settings_prefix(const std::filesystem::path& file);

/// Writes one of SettingsFiles beside a tokenizer; makes the folder that its name may have. Throws FileError.
void write_settings_file(const std::filesystem::path& folder, const std::string& name, std::string_view bytes);

}  // namespace attune::huggingface

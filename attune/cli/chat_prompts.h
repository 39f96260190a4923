#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attune::cli {

/// What the model of a folder reads for each conversation: what the folder's chat template writes. A conversation is
/// the user's message as plain text, or a JSON list of messages, which begins with "[{". Throws ConfigError for a
/// folder without a template, DataError for what the template refuses.
std::vector<std::string> chat_prompts(const std::filesystem::path& folder,
                                      const std::vector<std::string>& conversations);

}  // namespace attune::cli

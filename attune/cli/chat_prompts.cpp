#include "attune/cli/chat_prompts.h"

#include <optional>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/hub/adapter_folder.h"
#include "attune/text/chat_template.h"

namespace attune::cli {
namespace {

bool is_message_list(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t bracket = text.find_first_not_of(kSpaces);
  if (bracket == std::string_view::npos || text[bracket] != '[') return false;
  const size_t next = text.find_first_not_of(kSpaces, bracket + 1);
  return next != std::string_view::npos && text[next] == '{';
}

}  // namespace

std::vector<std::string> chat_prompts(const std::filesystem::path& folder,
                                      const std::vector<std::string>& conversations) {
  const std::optional<ChatTemplate> chat = open_chat_template(folder);
  if (!chat)
    fail<ConfigError>(
        "--chat: {} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)",
        folder.string());
  std::vector<std::string> prompts;
  for (const std::string& text : conversations)
    prompts.push_back(is_message_list(text) ? chat->render_json(text) : chat->render({{"user", text}}));
  return prompts;
}

}  // namespace attune::cli

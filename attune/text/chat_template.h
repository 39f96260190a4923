#pragma once
// Chat templates of Hugging Face folders: a Jinja template that writes a conversation as the text that a model reads.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// One message of a conversation.
struct ChatMessage {
  std::string role;  // "system", "user" or "assistant", where the template knows no other
  std::string content;
};

struct ChatTemplateOptions {
  bool add_generation_prompt = true;  // the text ends with the beginning of the assistant's turn
  int64_t now = 0;                    // what strftime_now formats, in seconds since 1970; 0: the time of the call
};

/// Writes conversations as `transformers`' apply_chat_template does, byte for byte. Supports what published templates
/// use of Jinja, listed in docs/hugging-face.md; anything else is refused when the template is read. A template may be
/// hostile: it cannot reach anything but its input, and its time, memory and output are limited. Thread-safe.
class ChatTemplate {
 public:
  /// `where` is the file's name, for messages. `tokens` are the names of special tokens and their text: "bos_token",
  /// "eos_token". Throws ConfigError "WHERE:LINE: ..." for what is no template and for what is not supported, by name.
  ChatTemplate(std::string_view source, std::string where, std::map<std::string, std::string> tokens = {});

  /// Returns the template of a model folder: chat_template.jinja, else "chat_template" of tokenizer_config.json; if
  /// that is a list, the one with the name "default". Returns nothing if the folder has neither. Conversations with
  /// tools get a template of their own if there is one: additional_chat_templates/tool_use.jinja, or the one with the
  /// name "tool_use" in the list. If that one cannot be read, such conversations are refused. `base` is for a folder
  /// with an adapter: it gives the special tokens that the folder does not name. Throws FileError and ConfigError.
  static std::optional<ChatTemplate> load(const std::filesystem::path& folder, const std::filesystem::path& base = {});

  /// Throws DataError "WHERE:LINE: ..." for what the template refuses (roles that do not alternate) or cannot compute.
  std::string render(const std::vector<ChatMessage>& messages, const ChatTemplateOptions& options = {}) const;
  /// The same for messages as JSON: a list of objects, with the keys that the template uses; a key of a message whose
  /// value is null is left out. `variables` is an object with more that the template can use: "tools", "documents",
  /// "enable_thinking". If it has tools, even an empty list, the template for tools is used. Throws DataError too when
  /// either is anything else, and for integers beyond 64 bits with a sign.
  std::string render_json(std::string_view messages, std::string_view variables = "{}",
                          const ChatTemplateOptions& options = {}) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

/// Copies the files that ChatTemplate::load() reads to another folder. For folders with tokenizers of Attune's own:
/// those of the hub write these files themselves when they are saved. Throws FileError.
void copy_chat_template(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace attune

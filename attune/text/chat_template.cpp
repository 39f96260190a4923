#include "attune/text/chat_template.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json.h"
#include "attune/text/huggingface/special_tokens.h"
#include "attune/text/jinja/interpreter.h"
#include "attune/text/jinja/parser.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplate = size_t{1} << 20;

// One template, or a list of {"name": ..., "template": ...}.
std::optional<std::string> template_of(const nlohmann::json& config, const std::string& where) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array())
    for (const nlohmann::json& one : *found)
      if (one.is_object() && one.value("name", nlohmann::json()) == "default" && one.contains("template") &&
          one["template"].is_string())
        return one["template"].get<std::string>();
  fail<ConfigError>("{}: chat_template needs a text, or a list with a template called \"default\"", where);
}

// What a model thought has several names; transformers gives it under those that templates read.
void add_reasoning(Json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) continue;
    const Json reasoning = *found;
    Json extended = {{"thinking", reasoning}};
    for (const auto& [key, value] : message.items()) extended[key] = value;
    extended["reasoning_content"] = reasoning;
    message = std::move(extended);
    return;
  }
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string where;
  jinja::Block block;
  std::map<std::string, std::string> tokens;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string where, std::map<std::string, std::string> tokens) {
  if (source.size() > kMaxTemplate)
    fail<ConfigError>("{}: the template has {} bytes, at most {} are accepted", where, source.size(), kMaxTemplate);
  auto parsed = std::make_shared<Parsed>();
  parsed->block = jinja::parse(source, where);
  parsed->where = std::move(where);
  parsed->tokens = std::move(tokens);
  parsed_ = std::move(parsed);
}

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& folder, const fs::path& base) {
  const fs::path own = folder / "chat_template.jinja";
  const huggingface::TokenizerConfig config = huggingface::read_tokenizer_config(folder);
  const huggingface::SpecialNames of_base =
      base.empty() ? huggingface::SpecialNames{} : huggingface::read_tokenizer_config(base).names;
  std::map<std::string, std::string> tokens;
  for (const huggingface::SpecialToken& token : huggingface::kSpecialTokens)
    for (const huggingface::SpecialNames* names : {&of_base, &config.names})
      if (const std::string& text = names->*token.name; !text.empty()) tokens[token.field] = text;
  if (is_there(own)) return ChatTemplate(read_file(own, kMaxTemplate), own.string(), std::move(tokens));
  const std::string config_file = (folder / "tokenizer_config.json").string();
  const std::optional<std::string> source = template_of(config.values, config_file);
  if (!source) return {};
  return ChatTemplate(*source, config_file + ": chat_template", std::move(tokens));
}

void copy_chat_template(const fs::path& from, const fs::path& to) {
  for (const fs::path& file : huggingface::read_tokenizer_config(from).files)
    write_file(to / file.filename(), read_file(file, kMaxTokenizerBytes));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatTemplateOptions& options) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return render_json(list.dump(-1, ' ', false, Json::error_handler_t::replace), "{}", options);
}

std::string ChatTemplate::render_json(std::string_view messages, std::string_view variables,
                                      const ChatTemplateOptions& options) const {
  Json list = parse_json<DataError>(messages, "messages");
  if (!list.is_array()) fail<DataError>("messages: needs a list of messages, found {}", list.type_name());
  for (Json& message : list) {
    if (!message.is_object()) fail<DataError>("messages: needs objects in the list, found {}", message.type_name());
    add_reasoning(message);
  }
  const Json more = parse_json<DataError>(variables, "variables");
  if (!more.is_object()) fail<DataError>("variables: needs an object, found {}", more.type_name());

  std::map<std::string, jinja::Value> names = {{"tools", jinja::Value()}, {"documents", jinja::Value()}};
  for (const auto& [name, text] : parsed_->tokens) names.insert_or_assign(name, jinja::Value(text));
  for (const auto& [name, value] : more.items()) names.insert_or_assign(name, jinja::Value::from_json(value));
  names.insert_or_assign("messages", jinja::Value::from_json(list));
  names.insert_or_assign("add_generation_prompt", jinja::Value(options.add_generation_prompt));
  const int64_t now = options.now != 0 ? options.now : static_cast<int64_t>(std::time(nullptr));
  return jinja::render(parsed_->block, parsed_->where, std::move(names), now);
}

}  // namespace attune

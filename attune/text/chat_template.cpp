#include "attune/text/chat_template.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json.h"
#include "attune/text/huggingface/folders/tokenizer_class.h"
#include "attune/text/huggingface/folders/tokenizer_config.h"
#include "attune/text/jinja/interpreter.h"
#include "attune/text/jinja/parser.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplate = size_t{1} << 20;

// A template's text, and where it is, for messages.
struct Source {
  std::string text, where;
};
// The templates of a folder: for all conversations, and for those with tools.
struct Sources {
  std::optional<Source> main, with_tools;
};

// The templates of tokenizer_config.json: one text, or a list of {"name": ..., "template": ...}. Of two with one name,
// the last counts.
Sources sources_of_config(const nlohmann::json& config, const std::string& file) {
  const std::string where = file + ": chat_template";
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return {.main = Source{found->get<std::string>(), where}, .with_tools = {}};
  Sources sources;
  if (found->is_array())
    for (const nlohmann::json& one : *found) {
      if (!one.is_object() || !one.contains("template") || !one["template"].is_string()) continue;
      const nlohmann::json name = one.value("name", nlohmann::json());
      if (name == "default") sources.main = Source{one["template"].get<std::string>(), where};
      if (name == "tool_use") sources.with_tools = Source{one["template"].get<std::string>(), where + " \"tool_use\""};
    }
  if (!sources.main) fail<ConfigError>("{} needs a text, or a list with a template called \"default\"", where);
  return sources;
}

// Reads the template files of the folder. If there are none, reads the templates of tokenizer_config.json.
Sources sources_of(const fs::path& folder, const nlohmann::json& config) {
  const fs::path main = folder / huggingface::kChatTemplate, with_tools = folder / huggingface::kToolTemplate;
  const auto read = [](const fs::path& file) -> std::optional<Source> {
    if (!is_there(file)) return {};
    return Source{read_file(file, kMaxTemplate), file.string()};
  };
  Sources sources{.main = read(main), .with_tools = read(with_tools)};
  if (sources.with_tools && !sources.main)
    fail<ConfigError>("{}: needs {} too, for conversations without tools", with_tools.string(), main.string());
  if (sources.main) return sources;
  return sources_of_config(config, (folder / "tokenizer_config.json").string());
}

struct ReadTemplate {
  std::string where;
  jinja::Block block;
  std::string refusal = {};  // why there is no block
};

ReadTemplate read_template(std::string_view source, std::string where) {
  if (source.size() > kMaxTemplate)
    fail<ConfigError>("{}: the template has {} bytes, at most {} are accepted", where, source.size(), kMaxTemplate);
  jinja::Block block = jinja::parse(source, where);
  return {.where = std::move(where), .block = std::move(block)};
}

constexpr JsonLimits kExact = {.exact_integers = true};

// transformers leaves out the keys of a message that are null.
Json without_nulls(Json& message) {
  Json::object_t kept;
  for (auto& [key, value] : message.get_ref<Json::object_t&>())
    if (!value.is_null()) kept.emplace_back(key, std::move(value));
  return kept;
}

// The reasoning of a message has several names. transformers gives it to templates as "thinking" and
// "reasoning_content", whichever name it came with.
void add_reasoning(Json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end()) continue;
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
  ReadTemplate main;
  std::optional<ReadTemplate> with_tools;
  std::map<std::string, std::string> tokens;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string where, std::map<std::string, std::string> tokens)
    : parsed_(std::make_shared<const Parsed>(
          Parsed{.main = read_template(source, std::move(where)), .with_tools = {}, .tokens = std::move(tokens)})) {}

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& folder, const fs::path& base) {
  const huggingface::TokenizerConfig config = huggingface::read_tokenizer_config(folder);
  const huggingface::SpecialNames of_base =
      base.empty() ? huggingface::SpecialNames{} : huggingface::read_tokenizer_config(base).names;
  std::map<std::string, std::string> tokens;
  for (const huggingface::SpecialToken& token : huggingface::kSpecialTokens)
    for (const huggingface::SpecialNames* names : {&of_base, &config.names})
      if (const std::string& text = names->*token.name; !text.empty()) tokens[token.field] = text;
  if (is_there(folder / "tokenizer.json")) {
    // Special tokens that no file names are those of the class that reads tokenizer.json. LlamaTokenizer's are left out
    // by kByteLevel: whether that class reads the file depends on what is in it, and it is not read here.
    constexpr bool kByteLevel = true;
    const huggingface::TokenizerClass* const type = huggingface::find_class(
        huggingface::class_for(config.tokenizer_class(), huggingface::read_model_names(folder), kByteLevel));
    for (size_t i = 0; type != nullptr && i < huggingface::kSpecialTokens.size(); ++i) {
      const char* const field = huggingface::kSpecialTokens[i].field;
      if (type->tokens[i] != nullptr && !config.says(field)) tokens.emplace(field, type->tokens[i]);
    }
  }
  const Sources sources = sources_of(folder, config.values);
  if (!sources.main) return {};
  Parsed parsed{
      .main = read_template(sources.main->text, sources.main->where), .with_tools = {}, .tokens = std::move(tokens)};
  if (const auto& source = sources.with_tools) try {
      parsed.with_tools = read_template(source->text, source->where);
    } catch (const ConfigError& error) {  // conversations without tools do not need it
      parsed.with_tools = ReadTemplate{.where = source->where, .block = {}, .refusal = error.what()};
    }
  return ChatTemplate(std::make_shared<const Parsed>(std::move(parsed)));
}

void copy_chat_template(const fs::path& from, const fs::path& to) {
  for (const auto& [name, bytes] : huggingface::read_tokenizer_config(from).read_files())
    huggingface::write_settings_file(to, name, bytes);
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatTemplateOptions& options) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return render_json(list.dump(-1, ' ', false, Json::error_handler_t::replace), "{}", options);
}

std::string ChatTemplate::render_json(std::string_view messages, std::string_view variables,
                                      const ChatTemplateOptions& options) const {
  Json list = parse_json<DataError>(messages, "messages", kExact);
  if (!list.is_array()) fail<DataError>("messages: needs a list of messages, found {}", list.type_name());
  for (Json& message : list) {
    if (!message.is_object()) fail<DataError>("messages: needs objects in the list, found {}", message.type_name());
    message = without_nulls(message);
    add_reasoning(message);
  }
  const Json more = parse_json<DataError>(variables, "variables", kExact);
  if (!more.is_object()) fail<DataError>("variables: needs an object, found {}", more.type_name());
  const bool has_tools = more.contains("tools") && !more["tools"].is_null();
  const ReadTemplate& chosen = has_tools && parsed_->with_tools ? *parsed_->with_tools : parsed_->main;
  if (!chosen.refusal.empty()) fail<DataError>("{}", chosen.refusal);

  std::map<std::string, jinja::Value> names = {{"tools", jinja::Value()}, {"documents", jinja::Value()}};
  for (const auto& [name, text] : parsed_->tokens) names.insert_or_assign(name, jinja::Value(text));
  for (const auto& [name, value] : more.items()) names.insert_or_assign(name, jinja::Value::from_json(value));
  names.insert_or_assign("messages", jinja::Value::from_json(list));
  names.insert_or_assign("add_generation_prompt", jinja::Value(options.add_generation_prompt));
  const int64_t now = options.now != 0 ? options.now : static_cast<int64_t>(std::time(nullptr));
  return jinja::render(chosen.block, chosen.where, std::move(names), now);
}

}  // namespace attune

#include "attune/text/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json.h"
#include "attune/text/jinja/interpreter.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplate = size_t{1} << 20;
constexpr uint64_t kMaxConfig = uint64_t{64} << 20;
constexpr int kMaxDepth = 64;
constexpr size_t kKeyShown = 100;
constexpr size_t kMaxKeys = 4096;  // an ordered object looks keys up one by one, so that many would take quadratic time

constexpr std::array<const char*, 7> kTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                "pad_token", "cls_token", "mask_token"};

// Throws E that begins with `where`. `keep` says which keys of the first level are kept.
template <class E, class Keep>
Json parse_bounded(std::string_view text, const std::string& where, Keep keep) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxDepth)
      fail<E>("{}: JSON is nested more than {} levels deep", where, kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event != Event::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (depth == 1 && !keep(key)) return false;
    if (!keys.back().insert(key).second)
      fail<E>("{}: JSON has key {} twice", where, show(Json(key)).substr(0, kKeyShown));
    if (keys.back().size() > kMaxKeys) fail<E>("{}: JSON has more than {} keys in one object", where, kMaxKeys);
    return true;
  };
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)  // the parser takes it for the end
    fail<E>("{}: is not valid JSON at byte {}", where, nul + 1);
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::parse_error& error) {
    fail<E>("{}: is not valid JSON at byte {}", where, error.byte);
  } catch (const Json::exception& error) {
    fail<E>("{}: is not valid JSON: {}", where, error.what());
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The keys of tokenizer_config.json or special_tokens_map.json that matter here.
Json read_token_config(const fs::path& path) {
  if (!is_there(path)) return Json::object();
  const Json config = parse_bounded<FileError>(read_file(path, kMaxConfig), path.string(), [](const std::string& key) {
    return key == "chat_template" || std::ranges::find(kTokens, key) != kTokens.end();
  });
  if (!config.is_object()) fail<FileError>("{}: needs an object, found {}", path.string(), config.type_name());
  return config;
}

// A token is text, or an object with its "content".
void add_tokens(const Json& config, std::map<std::string, std::string>& tokens) {
  for (const char* name : kTokens) {
    const auto found = config.find(name);
    if (found == config.end()) continue;
    const Json content = found->is_object() ? found->value("content", Json()) : *found;
    if (content.is_string()) tokens[name] = content.get<std::string>();
  }
}

// One template, or a list of {"name": ..., "template": ...}.
std::optional<std::string> template_of(const Json& config, const std::string& where) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array())
    for (const Json& one : *found)
      if (one.is_object() && one.value("name", Json()) == "default" && one.value("template", Json()).is_string())
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
  parsed->block = jinja::parse(source, where, jinja::known_names());
  parsed->where = std::move(where);
  parsed->tokens = std::move(tokens);
  parsed_ = std::move(parsed);
}

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& folder) {
  const fs::path own = folder / "chat_template.jinja", config_file = folder / "tokenizer_config.json";
  const Json config = read_token_config(config_file);
  std::map<std::string, std::string> tokens;
  add_tokens(read_token_config(folder / "special_tokens_map.json"), tokens);
  add_tokens(config, tokens);
  if (is_there(own)) return ChatTemplate(read_file(own, kMaxTemplate), own.string(), std::move(tokens));
  const std::optional<std::string> source = template_of(config, config_file.string());
  if (!source) return {};
  return ChatTemplate(*source, config_file.string() + ": chat_template", std::move(tokens));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatTemplateOptions& options) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return render_json(list.dump(-1, ' ', false, Json::error_handler_t::replace), "{}", options);
}

std::string ChatTemplate::render_json(std::string_view messages, std::string_view variables,
                                      const ChatTemplateOptions& options) const {
  const auto everything = [](const std::string&) { return true; };
  Json list = parse_bounded<DataError>(messages, "messages", everything);
  if (!list.is_array()) fail<DataError>("messages: needs a list of messages, found {}", list.type_name());
  for (Json& message : list) {
    if (!message.is_object()) fail<DataError>("messages: needs objects in the list, found {}", message.type_name());
    add_reasoning(message);
  }
  const Json more = parse_bounded<DataError>(variables, "variables", everything);
  if (!more.is_object()) fail<DataError>("variables: needs an object, found {}", more.type_name());

  std::map<std::string, jinja::Value> names = {{"tools", jinja::Value()}, {"documents", jinja::Value()}};
  for (const auto& [name, text] : parsed_->tokens) names.insert_or_assign(name, jinja::Value(text));
  for (const auto& [name, value] : more.items()) names.insert_or_assign(name, jinja::Value::from_json(value));
  names.insert_or_assign("messages", jinja::Value::from_json(list));
  names.insert_or_assign("add_generation_prompt", jinja::Value(options.add_generation_prompt));
  const int64_t now = options.now != 0 ? options.now : static_cast<int64_t>(std::time(nullptr));
  return jinja::render(parsed_->block, parsed_->where, std::move(names), now, {});
}

}  // namespace attune

#include "attune/text/huggingface/special_tokens.h"

#include <map>
#include <set>

#include "attune/base/file.h"
#include "attune/base/json.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFiles = {"tokenizer_config.json", "special_tokens_map.json"};

// Keys are looked up in a tree, and some files have thousands of them: one for each added token.
constexpr JsonLimits kLimits = {.depth = 40, .keys = SIZE_MAX, .values = size_t{1} << 21};

void read_names(const nlohmann::json& values, const std::string& where, TokenizerConfig& config) {
  const Fields fields = Fields::of_file(values, where);
  for (const SpecialToken& token : kSpecialTokens)
    if (const auto* value = fields.find(token.field); value != nullptr && (config.names.*token.name).empty())
      config.names.*token.name = read_added_token(*value, fields.where(token.field)).content;
}

// {"0": {"content": "<pad>", ...}, ...}
void read_added(const nlohmann::json& values, const std::string& where, TokenizerConfig& config) {
  const Fields fields = Fields::of_file(values, where);
  const auto* added = fields.find("added_tokens_decoder");
  if (added == nullptr || !added->is_object()) return;
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [id, token] : added->items())
    by_id[std::atoll(id.c_str())] = read_added_token(token, fields.where("added_tokens_decoder." + id));
  for (auto& [id, token] : by_id) config.added.push_back(std::move(token));
}

// The tokens of "additional_special_tokens", or of what transformers 5 calls it.
std::vector<std::string> additional_tokens(const TokenizerConfig& config) {
  std::vector<std::string> tokens;
  for (const auto& [fields, name] :
       {std::pair(&config.values, "additional_special_tokens"), std::pair(&config.values, "extra_special_tokens"),
        std::pair(&config.map, "additional_special_tokens")}) {
    const auto found = fields->find(name);
    if (found == fields->end() || !found->is_array() || !tokens.empty()) continue;
    for (const nlohmann::json& one : *found) {
      const nlohmann::json* const text = one.is_object() && one.contains("content") ? &one["content"] : &one;
      if (text->is_string()) tokens.push_back(text->get<std::string>());
    }
  }
  return tokens;
}

// added_tokens.json of older folders: {"<sum>": 50265, ...}
void read_older_added(const nlohmann::json& values, const std::string& where, TokenizerConfig& config) {
  if (!values.is_object()) fail<FileError>("{}: is {}, expected an object", where, values.type_name());
  const std::vector<std::string> additional = additional_tokens(config);
  std::set<std::string> special(additional.begin(), additional.end());
  for (const SpecialToken& token : kSpecialTokens) special.insert(config.names.*token.name);
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [token, id] : values.items()) {
    if (!id.is_number_integer()) fail<FileError>("{}: the id of \"{}\" is no whole number", where, token);
    AddedToken& added = by_id[id.get<int64_t>()] = read_added_token(token, where);
    added.special = special.contains(token);
    added.normalized = !added.special;
  }
  for (auto& [id, token] : by_id) config.added.push_back(std::move(token));
}

}  // namespace

bool TokenizerConfig::flag(const char* name, bool otherwise) const {
  return Fields(values, kFiles[0]).boolean(name, otherwise);
}

std::string TokenizerConfig::text(const char* name, const char* otherwise) const {
  const auto found = values.find(name);
  return found != values.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::vector<std::string> TokenizerConfig::languages(const std::string& file) const {
  std::vector<std::string> tokens = additional_tokens(*this);
  std::erase(tokens, "<mask>");
  if (tokens.empty()) fail<FileError>("{}: additional_special_tokens name no languages", file);
  return tokens;
}

std::string TokenizerConfig::tokenizer_class() const {
  std::string name = text("tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

SettingsFiles TokenizerConfig::read_files() const {
  SettingsFiles all;
  for (const fs::path& path : files) all.emplace_back(path.filename().string(), read_file(path, kMaxTokenizerBytes));
  return all;
}

TokenizerConfig read_tokenizer_config(const fs::path& folder, bool added_tokens_json) {
  TokenizerConfig config;
  for (const char* name : kFiles) {
    const fs::path file = folder / name;
    if (!is_there(file)) continue;
    auto values = parse_json<FileError, nlohmann::json>(read_file(file, kMaxTokenizerBytes), file.string(), kLimits);
    read_names(values, file.string(), config);
    config.files.push_back(file);
    if (file.filename() == kFiles[0]) read_added(values, file.string(), config);
    (file.filename() == kFiles[0] ? config.values : config.map) = std::move(values);
  }
  const fs::path added = folder / "added_tokens.json";
  if (added_tokens_json && is_there(added) && config.added.empty()) {
    const auto values =
        parse_json<FileError, nlohmann::json>(read_file(added, kMaxTokenizerBytes), added.string(), kLimits);
    read_older_added(values, added.string(), config);
    config.files.push_back(added);
  }
  if (const fs::path chat = folder / "chat_template.jinja"; is_there(chat)) config.files.push_back(chat);
  return config;
}

}  // namespace attune::huggingface

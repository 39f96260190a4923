#include "attune/text/huggingface/folders/tokenizer_config.h"

#include <algorithm>
#include <map>
#include <set>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

// Keys are looked up in a tree, and some files have thousands of them: one for each added token.
constexpr JsonLimits kLimits = {.depth = 40, .keys = SIZE_MAX, .values = size_t{1} << 21};

// A special token that a file names: a text, or an object with its flags.
AddedToken special_token(const nlohmann::json& value, const std::string& where) {
  AddedToken token = read_added_token(value, where);
  token.special = true;
  if (value.is_object() && !value.contains("normalized")) token.normalized = false;
  return token;
}

// One of a list of special tokens. Objects that transformers wrote with a type have all their flags; those of older
// folders lack "special".
AddedToken extra_token(const nlohmann::json& value, const std::string& where) {
  const bool has_flags = value.is_object() && value.contains("__type");
  return has_flags ? read_added_token(value, where) : special_token(value, where);
}

// Whether a field other than those of kSpecialTokens has a token: a text, or an object with "content".
bool may_be_token(const nlohmann::json& value) {
  if (!value.is_object()) return value.is_string();
  const auto content = value.find("content");
  return content != value.end() && content->is_string();
}

// A file of settings, and its name for messages.
struct SettingsFile {
  const nlohmann::json* values;
  std::string name;

  std::string where(const std::string& field) const { return name + ": " + cut_text(field, 80); }
};

// Reads each field of a special token from the first file that has it; null counts as having it.
void read_named(const std::vector<SettingsFile>& files, TokenizerConfig& config) {
  for (const SpecialToken& token : kSpecialTokens) {
    for (const SettingsFile& file : files) {
      const auto found = file.values->find(token.field);
      if (found == file.values->end()) continue;
      if (found->is_null()) break;
      config.named.push_back(special_token(*found, file.where(token.field)));
      config.names.*token.name = config.named.back().content;
      break;
    }
  }
}

bool is_known_field(const std::string& field) {
  return std::ranges::any_of(kSpecialTokens, [&](const SpecialToken& token) { return field == token.field; });
}

// Special tokens of a model's own: "image_token": "<image>".
void read_own_named(const std::vector<SettingsFile>& files, TokenizerConfig& config) {
  for (const SettingsFile& file : files)
    for (const auto& [field, value] : file.values->items())
      if (field.ends_with("_token") && may_be_token(value) && !is_known_field(field))
        config.named.push_back(special_token(value, file.where(field)));
}

void read_list(const SettingsFile& file, const char* field, TokenizerConfig& config) {
  const auto found = file.values->find(field);
  if (found == file.values->end()) return;
  std::set<std::string> known;
  for (const AddedToken& token : config.extra) known.insert(token.content);
  if (found->is_object()) {  // {"image_token": "<image>"}
    for (const auto& [name, value] : found->items())
      if (may_be_token(value)) config.named.push_back(special_token(value, file.where(field)));
  } else if (found->is_array()) {
    for (const nlohmann::json& value : *found)
      if (may_be_token(value)) {
        AddedToken token = extra_token(value, file.where(field));
        if (known.insert(token.content).second) config.extra.push_back(std::move(token));
      }
  }
}

// Reads the lists of extra special tokens. In each file, the list of transformers 5 goes before that of older versions.
// What special_tokens_map.json has is added to what tokenizer_config.json has.
void read_extra(const std::vector<SettingsFile>& files, TokenizerConfig& config) {
  const SettingsFile& main = files.back();
  read_list(main, "extra_special_tokens", config);
  if (config.extra.empty()) read_list(main, "additional_special_tokens", config);
  if (files.size() == 1) return;
  read_list(files.front(), "extra_special_tokens", config);
  if (config.extra.empty()) read_list(files.front(), "additional_special_tokens", config);
}

// {"0": {"content": "<pad>", ...}, ...}
void read_added(const SettingsFile& file, TokenizerConfig& config) {
  const auto added = file.values->find("added_tokens_decoder");
  if (added == file.values->end() || !added->is_object()) return;
  config.has_decoder = true;
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [id, token] : added->items())
    by_id[std::atoll(id.c_str())] = read_added_token(token, file.where("added_tokens_decoder." + id));
  for (auto& [id, token] : by_id) config.added.push_back(std::move(token));
}

// added_tokens.json of older folders: {"<sum>": 50265, ...}
void read_older_added(const SettingsFile& file, TokenizerConfig& config) {
  std::set<std::string> special;
  for (const std::vector<AddedToken>* const tokens : {&config.named, &config.extra})
    for (const AddedToken& token : *tokens) special.insert(token.content);
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [token, id] : file.values->items()) {
    if (!id.is_number_integer()) fail<FileError>("{}: the id of {} is no whole number", file.name, in_quotes(token));
    AddedToken& added = by_id[id.get<int64_t>()] = read_added_token(token, file.name);
    added.special = special.contains(token);
    added.normalized = !added.special;
  }
  for (auto& [id, token] : by_id) config.added.push_back(std::move(token));
}

nlohmann::json read_beside(const fs::path& file, TokenizerConfig& config) {
  if (is_there(file)) config.files.push_back(file);
  return read_settings(file);
}

}  // namespace

bool TokenizerConfig::flag(const char* name, bool otherwise) const {
  return Fields::of_file(values, (folder / (prefix + kSettingsFiles[0])).string()).boolean(name, otherwise);
}

std::string TokenizerConfig::text(const char* name, const char* otherwise) const {
  const auto found = values.find(name);
  return found != values.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

bool TokenizerConfig::says(const char* field) const {
  return values.contains(field) || (!has_decoder && map.contains(field));
}

std::vector<std::string> TokenizerConfig::languages(const std::string& file) const {
  TokenizerConfig lists;
  read_extra({{&map, kSettingsFiles[1]}, {&values, kSettingsFiles[0]}}, lists);  // of both files in any case
  std::vector<std::string> tokens;
  for (const AddedToken& token : lists.extra)
    if (token.content != "<mask>") tokens.push_back(token.content);
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
  for (const fs::path& path : files)
    all.emplace_back(path.lexically_relative(folder).string(), read_file(path, kMaxTokenizerBytes));
  return all;
}

SettingsFiles TokenizerConfig::with_class(SettingsFiles settings, const std::string& name) const {
  nlohmann::json changed = values;
  changed["tokenizer_class"] = name;
  for (const SpecialToken& token : kSpecialTokens)  // the copy may come beside a config.json of another model_type
    if (const std::string& content = names.*token.name; !content.empty() && !says(token.field))
      changed[token.field] = content;
  const std::string own = kSettingsFiles[0];
  std::erase_if(settings, [&](const auto& file) { return file.first == own; });
  settings.emplace_back(own, changed.dump());
  return settings;
}

nlohmann::json read_settings(const fs::path& file) {
  if (!is_there(file)) return nlohmann::json::object();
  auto values = parse_json<FileError, nlohmann::json>(read_file(file, kMaxTokenizerBytes), file.string(), kLimits);
  if (!values.is_object()) fail<FileError>("{}: is {}, expected an object", file.string(), Fields::shown(values));
  return values;
}

TokenizerConfig read_tokenizer_config(const fs::path& folder, const std::string& prefix) {
  TokenizerConfig config;
  config.folder = folder;
  const auto is_prefixed = [&](const char* name) { return is_there(folder / (prefix + name)); };
  if (std::ranges::any_of(kSettingsFiles, is_prefixed)) config.prefix = prefix;
  const auto path_of = [&](size_t i) { return folder / (config.prefix + kSettingsFiles[i]); };
  const fs::path main = path_of(0), map = path_of(1), added = path_of(2);
  config.values = read_beside(main, config);
  config.map = read_beside(map, config);
  std::vector<SettingsFile> files = {{&config.map, map.string()}, {&config.values, main.string()}};
  read_added(files.back(), config);
  if (config.has_decoder) files.erase(files.begin());
  read_named(files, config);
  read_own_named(files, config);
  read_extra(files, config);
  if (!config.has_decoder) {
    const nlohmann::json older = read_beside(added, config);
    read_older_added({&older, added.string()}, config);
  }
  if (config.added.size() + config.named.size() + config.extra.size() > kMaxAddedTokens)
    fail<FileError>("{}: has more than {} added tokens", main.string(), kMaxAddedTokens);
  for (const char* name : {kChatTemplate, kToolTemplate})
    if (const fs::path chat = folder / name; is_there(chat)) config.files.push_back(chat);
  return config;
}

}  // namespace attune::huggingface

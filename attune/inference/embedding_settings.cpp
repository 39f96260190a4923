// The files of sentence-transformers.

#include <algorithm>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/inference/embedder.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTransformerFile = "sentence_bert_config.json";
constexpr const char* kModulesFile = "modules.json";
constexpr const char* kPromptsFile = "config_sentence_transformers.json";
constexpr size_t kMostPromptBytes = size_t{64} << 10;  // a prompt is read with each text

// A folder's file; an empty object where there is none.
Json read_if_there(const fs::path& path) {
  if (!is_there(path)) return Json::object();
  Json json = read_json_file(path);
  if (!json.is_object()) fail<ConfigError>("{}: needs an object, found {}", path.string(), json.type_name());
  return json;
}

// The first keys are those of old versions, one flag for each; several are joined in this order.
constexpr std::pair<const char*, TextPooling> kFlags[] = {
    {"pooling_mode_cls_token", TextPooling::cls},
    {"pooling_mode_max_tokens", TextPooling::max},
    {"pooling_mode_mean_tokens", TextPooling::mean},
    {"pooling_mode_mean_sqrt_len_tokens", TextPooling::mean_sqrt_len},
    {"pooling_mode_lasttoken", TextPooling::last_token}};
constexpr std::pair<const char*, TextPooling> kModes[] = {{"cls", TextPooling::cls},
                                                          {"max", TextPooling::max},
                                                          {"mean", TextPooling::mean},
                                                          {"mean_sqrt_len_tokens", TextPooling::mean_sqrt_len},
                                                          {"lasttoken", TextPooling::last_token}};

TextPooling mode_of(const Json& name, const fs::path& path) {
  for (const auto& [mode, pooling] : kModes)
    if (name == mode) return pooling;
  fail<ConfigError>("{}: pooling_mode is {}, needs cls, max, mean, mean_sqrt_len_tokens or lasttoken", path.string(),
                    cut_text(show(name), 80));
}

std::vector<TextPooling> poolings_of(const Json& config, const fs::path& path) {
  std::vector<TextPooling> found;
  if (const auto mode = config.find("pooling_mode"); mode != config.end()) {
    if (!mode->is_array()) return {mode_of(*mode, path)};
    for (const Json& one : *mode) found.push_back(mode_of(one, path));
  } else {
    for (const auto& [key, pooling] : kFlags)
      if (config.value(key, Json()) == true) found.push_back(pooling);
  }
  for (const auto& [key, value] : config.items()) {
    const bool known = std::ranges::any_of(kFlags, [&, &name = key](const auto& flag) { return name == flag.first; });
    if (key.starts_with("pooling_mode_") && value == true && !known)
      fail<ConfigError>("{}: {} is not supported", path.string(), in_quotes(key));
  }
  if (found.empty()) fail<ConfigError>("{}: names no pooling", path.string());
  return found;
}

void read_pooling(const fs::path& path, EmbeddingSettings& settings) {
  const Json config = read_if_there(path);
  settings.pooling = poolings_of(config, path);
  settings.pools_prompt = config.value("include_prompt", Json()) != false;
}

void read_transformer(const fs::path& folder, EmbeddingSettings& settings) {
  const fs::path path = folder / kTransformerFile;
  const Json config = read_if_there(path);
  const Json most = config.value("max_seq_length", Json());
  if (!most.is_null()) {
    if (!most.is_number_integer() || most.get<int64_t>() < 1)
      fail<ConfigError>("{}: max_seq_length is {}, needs a number from 1", path.string(), cut_text(show(most), 80));
    settings.max_tokens = most.get<int64_t>();
  }
  settings.lowercase = config.value("do_lower_case", Json()) == true;
}

void read_prompts(const fs::path& folder, EmbeddingSettings& settings) {
  const fs::path path = folder / kPromptsFile;
  const Json config = read_if_there(path), prompts = config.value("prompts", Json());
  if (!prompts.is_null() && !prompts.is_object())
    fail<ConfigError>("{}: prompts needs an object, found {}", path.string(), prompts.type_name());
  for (const auto& [name, prompt] : prompts.items()) {
    if (prompt.is_null()) continue;
    if (!prompt.is_string() || prompt.get_ref<const std::string&>().size() > kMostPromptBytes)
      fail<ConfigError>("{}: prompts: {} needs a text of at most {} bytes", path.string(), in_quotes(name),
                        kMostPromptBytes);
    settings.prompts[name] = prompt.get<std::string>();
  }
  const Json name = config.value("default_prompt_name", Json());
  if (name.is_null()) return;
  if (!name.is_string() || !settings.prompts.contains(name.get<std::string>()))
    fail<ConfigError>("{}: default_prompt_name is {}, needs the name of a prompt", path.string(),
                      cut_text(show(name), 80));
  settings.prompt_name = name.get<std::string>();
}

// Some folders have a number beyond all integers where there is no limit.
int64_t most_tokens_of_tokenizer(const fs::path& folder) {
  constexpr double kNoLimit = 1e9;
  const fs::path path = folder / "tokenizer_config.json";
  const Json most = read_if_there(path).value("model_max_length", Json());
  if (most.is_null()) return EmbeddingSettings{}.max_tokens;
  if (!most.is_number() || most.get<double>() < 1)
    fail<ConfigError>("{}: model_max_length is {}, needs a number from 1", path.string(), cut_text(show(most), 80));
  const auto number = most.get<double>();
  return number < kNoLimit ? static_cast<int64_t>(number) : EmbeddingSettings{}.max_tokens;
}

// A module of modules.json.
struct EmbeddingModule {
  std::string type;  // the whole name of its class
  fs::path folder;   // relative to the model's, and within it

  std::string class_name() const { return type.substr(type.rfind('.') + 1); }
  fs::path config() const { return (folder / "config.json").lexically_normal(); }
};

// None where the folder has no modules.json.
std::vector<EmbeddingModule> modules_of(const fs::path& folder) {
  const fs::path path = folder / kModulesFile;
  if (!is_there(path)) return {};
  const Json modules = read_json_file(path);
  if (!modules.is_array())
    fail<ConfigError>("{}: needs a list of modules, found {}", path.string(), modules.type_name());
  std::vector<EmbeddingModule> found;
  for (const Json& module : modules) {
    const Json type = module.is_object() ? module.value("type", Json()) : Json();
    const Json place = module.is_object() ? module.value("path", Json("")) : Json();
    if (!type.is_string() || !place.is_string())
      fail<ConfigError>("{}: needs a type and a path for each module", path.string());
    const fs::path relative = place.get<std::string>();
    if (relative.is_absolute() || std::ranges::find(relative, fs::path("..")) != relative.end())
      fail<ConfigError>("{}: path {} is not in the folder", path.string(), in_quotes(place.get<std::string>()));
    found.push_back({.type = type.get<std::string>(), .folder = relative});
  }
  return found;
}

void read_module(const fs::path& folder, const EmbeddingModule& module, EmbeddingSettings& settings) {
  const std::string name = module.class_name();
  if (name == "Transformer" && module.folder.empty()) return read_transformer(folder, settings);
  if (name == "Pooling") return read_pooling(folder / module.config(), settings);
  if (name != "Normalize")
    fail<ConfigError>("{}: module {} with path {} is not supported", (folder / kModulesFile).string(),
                      in_quotes(module.type), in_quotes(module.folder.string()));
  settings.normalize = true;
}

// Whether the flags cannot express these poolings: flags have a fixed order, and each is there once.
bool needs_a_list(const std::vector<TextPooling>& poolings) {
  const auto place = [](TextPooling mode) {
    return std::ranges::find(kFlags, mode, [](const auto& flag) { return flag.second; });
  };
  return std::ranges::adjacent_find(poolings, std::ranges::greater_equal(), place) != poolings.end();
}

}  // namespace

EmbeddingSettings read_embedding_settings(const fs::path& folder) {
  EmbeddingSettings settings;
  if (is_there(folder / kModulesFile)) read_prompts(folder, settings);
  for (const EmbeddingModule& module : modules_of(folder)) read_module(folder, module, settings);
  if (settings.max_tokens == EmbeddingSettings{}.max_tokens) settings.max_tokens = most_tokens_of_tokenizer(folder);
  return settings;
}

std::vector<fs::path> embedding_module_files(const fs::path& folder) {
  if (!is_there(folder / kModulesFile)) return {};
  read_embedding_settings(folder);  // throws for what is not supported
  std::vector<fs::path> files;
  for (const EmbeddingModule& module : modules_of(folder))
    if (module.config().has_parent_path()) files.push_back(module.config());  // else it is the model's own
  return files;
}

void write_embedding_settings(const fs::path& folder, const EmbeddingSettings& settings, int64_t dimension) {
  constexpr const char* kPoolingFolder = "1_Pooling";
  Json modules = Json::array();
  const auto add = [&](const char* type, const char* place) {
    modules.push_back({{"idx", modules.size()}, {"path", place}, {"type", type}});
  };
  add("sentence_transformers.models.Transformer", "");
  add("sentence_transformers.models.Pooling", kPoolingFolder);
  if (settings.normalize) add("sentence_transformers.models.Normalize", "2_Normalize");
  Json pooling = {{"word_embedding_dimension", dimension}, {"include_prompt", settings.pools_prompt}};
  for (const auto& [flag, mode] : kFlags)
    pooling[flag] = std::ranges::find(settings.pooling, mode) != settings.pooling.end();
  if (needs_a_list(settings.pooling)) {
    Json modes = Json::array();
    for (const TextPooling mode : settings.pooling)
      modes.push_back(std::ranges::find(kModes, mode, [](const auto& named) { return named.second; })->first);
    pooling["pooling_mode"] = modes;
  }
  Json transformer = {{"do_lower_case", settings.lowercase}};
  if (settings.max_tokens < EmbeddingSettings{}.max_tokens) transformer["max_seq_length"] = settings.max_tokens;
  make_directories(folder / kPoolingFolder);
  write_json_file(folder / kPoolingFolder / "config.json", pooling);
  if (!settings.prompts.empty())
    write_json_file(folder / kPromptsFile,
                    {{"prompts", settings.prompts},
                     {"default_prompt_name", settings.prompt_name.empty() ? Json() : Json(settings.prompt_name)}});
  write_json_file(folder / kTransformerFile, transformer);
  write_json_file(folder / kModulesFile, modules);
}

}  // namespace attune

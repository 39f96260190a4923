#include "attune/serve/serve_config.h"

#include <algorithm>
#include <map>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/processors.h"
#include "attune/inference/option_fields.h"
#include "attune/io/toml_config.h"
#include "attune/serve/http/host_addresses.h"
#include "attune/serve/origin.h"
#include "attune/tensor/device_error.h"

namespace attune::serve {
namespace {

bool is_language(std::string_view part) {
  return (part.size() == 2 || part.size() == 3) &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// `where`: what stands before the name, "models.".
void check_name(const std::string& where, const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':' || c == '/' || c == '=';
  };
  if (name.empty() || name.size() > 128 || !std::all_of(name.begin(), name.end(), fits))
    fail<ConfigError>("{}{}: a name has 1 to 128 letters, digits and any of -_.:/=", where, name.substr(0, 128));
}

// A path that a file names, from the folder that the file is in; an empty one stays empty.
std::string from_folder_of(const std::filesystem::path& file, const std::string& path) {
  return path.empty() ? path : (file.parent_path() / path).lexically_normal().string();
}

// The same for a field of a table.
void from_folder_of(const std::filesystem::path& file, Json& table, const char* field) {
  if (!table.is_object() || !table.contains(field) || !table[field].is_string()) return;
  table[field] = from_folder_of(file, table[field].get<std::string>());
}

void check_adapters(const ServeConfig& config) {
  std::map<std::string, std::string> owners;
  for (const auto& [model, of_model] : config.models) {
    for (const auto& [name, folder] : of_model.adapters) {
      check_name("models." + model + ".adapters.", name);
      if (folder.empty()) fail<ConfigError>("models.{}.adapters.{}: is empty, needs a folder", model, name);
      if (config.models.contains(name))
        fail<ConfigError>("models.{}.adapters.{}: is the name of a model too", model, name);
      const auto [other, is_new] = owners.emplace(name, model);
      if (!is_new)
        fail<ConfigError>("models.{}.adapters.{}: is an adapter of models.{} too", model, name, other->second);
    }
  }
}

}  // namespace

void ServeConfig::validate() const {
  constexpr int64_t kMany = int64_t{1} << 40;
  constexpr double kLong = 1e6;
  check_range<int64_t>("http.connections", http.connections, 1, 1 << 20);
  check_range<int64_t>("http.header_bytes", http.header_bytes, 1024, 1 << 20);
  check_range<int64_t>("http.body_bytes", http.body_bytes, 1, 1 << 30);
  check_range<int64_t>("http.bodies_bytes", http.bodies_bytes, 1, kMany);
  check_range<int64_t>("http.unsent_bytes", http.unsent_bytes, 1 << 16, kMany);
  check_range("http.header_seconds", http.header_seconds, 0.01, kLong);
  check_range("http.body_seconds", http.body_seconds, 0.01, kLong);
  check_range("http.idle_seconds", http.idle_seconds, 0.01, kLong);
  check_range("http.write_seconds", http.write_seconds, 0.01, kLong);
  check_range<int64_t>("limits.requests", limits.requests, 1, kMany);
  check_range<int64_t>("limits.texts", limits.texts, 1, 1 << 20);
  check_range<int64_t>("limits.text_bytes", limits.text_bytes, 1, 1 << 20);
  check_range<int64_t>("limits.tokens", limits.tokens, 1, kMany);
  check_range<int64_t>("limits.max_tokens", limits.max_tokens, 1, kMany);
  check_range<int64_t>("limits.samples", limits.samples, 1, 1 << 16);
  check_range<int64_t>("limits.beam_size", limits.beam_size, 1, 1024);
  check_range<int64_t>("limits.stop_strings", limits.stop_strings, 0, 1 << 16);
  check_range<int64_t>("limits.attention_tokens", limits.attention_tokens, 1, 4096);
  check_range<int64_t>("limits.log_probabilities", limits.log_probabilities, 1, kMany);
  check_range("limits.request_seconds", limits.request_seconds, 0.01, kLong);
  check_range("drain_seconds", drain_seconds, 0.0, kLong);
  for (const std::string& origin : security.cors_origins) {
    if (origin == "null")
      fail<ConfigError>(
          "security.cors_origins (--cors-origin): is \"null\", the origin of a page opened as a file, which a page of "
          "any site can take: serve the page from http://localhost, or name \"*\" to let all pages ask");
    if (origin != "*" && !is_origin(origin))
      fail<ConfigError>(
          "security.cors_origins (--cors-origin): is {}, needs \"*\" or an origin as browsers write it, in small "
          "letters and without a path: https://example.com, http://localhost:3000",
          in_quotes(origin));
  }
  for (const std::string& host : security.hosts) {
    if (!is_host(host))
      fail<ConfigError>(
          "security.hosts: is {}, needs the name of this server alone, without scheme, port and path: attune.example",
          in_quotes(host));
  }
  if (models.empty()) fail<ConfigError>("no model is named: attune serve FOLDER, or [models.NAME] in serve.toml");
  for (const auto& [name, model] : models) {
    check_name("models.", name);
    if (model.folder.empty()) fail<ConfigError>("models.{}.folder is missing", name);
    check_range<int64_t>("models." + name + ".batch", model.batch, 1, 4096);
    check_range<int64_t>("models." + name + ".cache_bytes", model.cache_bytes, 0, INT64_MAX);
    check_range<int64_t>("models." + name + ".threads", model.threads, 0, kMostThreads);
    model.place(name);
  }
  check_adapters(*this);
  if (security.api_keys.empty() && !std::ranges::all_of(addresses_of(http.host), is_loopback))
    fail<ConfigError>("http.host = \"{}\": other machines may ask only with security.api_keys (--api-keys)", http.host);
}

Device ModelConfig::place(const std::string& name) const {
  try {
    return Device::named(device);
  } catch (const ConfigError& error) {
    fail<ConfigError>("models.{}.{}", name, error.what());
  } catch (const DeviceError& error) {
    fail<DeviceError>("models.{}.device: {}", name, error.what());
  }
}

void read_serve_config(const std::filesystem::path& file, ServeConfig& config) {
  Json json = read_toml(file);
  for (const auto& [table, field] :
       {std::pair{"http", "tls_certificate"}, {"http", "tls_key"}, {"security", "api_keys"}})
    if (json.contains(table)) from_folder_of(file, json[table], field);
  if (json.contains("models") && json["models"].is_object())
    for (auto& [name, model] : json["models"].items()) from_folder_of(file, model, "folder");
  const std::string where = file.string();
  Json models = json.value("models", Json::object());  // tables whose names are no fields
  json.erase("models");
  FieldReader reader(json, where, ": ");
  reader("http", config.http);
  reader("limits", config.limits);
  reader("security", config.security);
  reader("drain_seconds", config.drain_seconds);
  reader.refuse_unknown();
  if (!models.is_object()) fail<ConfigError>("{}: models: needs tables, [models.NAME]", where);
  for (auto& [name, table] : models.items()) {
    const std::string of_model = where + ": models." + name;
    ModelConfig& model = config.models[name];
    model.adapters = take_adapters(table, of_model);
    for (auto& [adapter, folder] : model.adapters) folder = from_folder_of(file, folder.string());
    read_fields(table, model, of_model);
  }
}

std::pair<std::string, ModelConfig> model_argument(const std::string& argument) {
  const size_t equals = argument.find('=');
  std::error_code ignored;
  if (equals != std::string::npos && !std::filesystem::is_directory(argument, ignored))
    return {argument.substr(0, equals), ModelConfig{.folder = argument.substr(equals + 1)}};
  std::filesystem::path folder = std::filesystem::path(argument).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  const std::string last = folder.filename().string(), before = folder.parent_path().filename().string();
  const bool part_of_run = (last == "model" || last == "best") && !before.empty();
  return {part_of_run ? before : last, ModelConfig{.folder = argument}};
}

void add_models(const std::vector<std::string>& arguments, ServeConfig& config) {
  std::map<std::string, std::string> folders;
  for (const std::string& argument : arguments) {
    const auto [name, model] = model_argument(argument);
    const auto [before, is_new] = folders.emplace(name, model.folder);
    if (!is_new)
      fail<ConfigError>("two models are named \"{}\": {} and {}; NAME=FOLDER gives another name", name, before->second,
                        model.folder);
    config.models[name].folder = model.folder;
  }
}

void add_adapters(const std::vector<std::string>& arguments, ServeConfig& config) {
  if (arguments.empty()) return;
  if (config.models.size() != 1)
    fail<ConfigError>("--adapter {}: there are {} models; [models.NAME.adapters] in serve.toml says whose it is",
                      arguments.front(), config.models.size());
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) fail<ConfigError>("--adapter {}: needs NAME=FOLDER", argument);
    const auto [name, is_new] =
        config.models.begin()->second.adapters.emplace(argument.substr(0, equals), argument.substr(equals + 1));
    if (!is_new)
      fail<ConfigError>("two adapters are named \"{}\": {} and {}", name->first, name->second.string(),
                        argument.substr(equals + 1));
  }
}

std::pair<std::string, std::string> languages_of_name(const std::string& name) {
  const size_t second = name.rfind('-');
  if (second == std::string::npos || second == 0) return {};
  const size_t before = name.find_last_of("-/_.:=", second - 1);
  const size_t first = before == std::string::npos ? 0 : before + 1;
  const std::string source = name.substr(first, second - first), target = name.substr(second + 1);
  if (!is_language(source) || !is_language(target)) return {};
  return {source, target};
}

}  // namespace attune::serve

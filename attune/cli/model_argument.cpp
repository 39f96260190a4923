#include "attune/cli/model_argument.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "attune/base/fail.h"
#include "attune/cli/text_output.h"
#include "attune/io/config_file.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

bool is_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kConfigFile, ignored);
}

// The model of a run in place of the run; anything else as it is.
std::string model_of(const std::string& given) {
  const fs::path folder(given);
  std::error_code ignored;
  if (is_model(folder) || !fs::is_directory(folder, ignored)) return given;
  if (is_model(folder / "model")) return (folder / "model").string();
  if (!fs::exists(folder / "config.toml", ignored)) return given;
  if (is_model(folder / "best"))
    fail<ConfigError>("{}: the run has not ended; {} is its best model so far", given, (folder / "best").string());
  fail<ConfigError>("{}: the run has no model yet; attune train --out {} --resume goes on", given, given);
}

}  // namespace

CLI::Option* add_model(CLI::App& command, std::string& folder, const std::string& description) {
  return command.add_option("model", folder, description)->transform(model_of, "")->type_name("TEXT");
}

CLI::Option* add_models(CLI::App& command, const std::string& name, std::vector<std::string>& folders,
                        const std::string& description) {
  return command.add_option(name, folders, description)
      ->transform(model_of, "")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void check_model(const std::string& folder, const std::string& usage) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) fail<ConfigError>("{}: is no model folder ({})", folder, usage);
}

void find_model(std::string& folder, std::vector<std::string>& texts, const std::string& usage) {
  std::error_code ignored;
  if (fs::exists(folder, ignored)) return;
  const auto names_model = [](const std::string& text) { return is_model(text) || is_model(fs::path(text) / "model"); };
  const auto found = std::ranges::find_if(texts, names_model);
  if (found == texts.end()) return check_model(folder, usage);
  const std::string model = model_of(*found);
  texts.erase(found);
  texts.insert(texts.begin(), folder);
  folder = model;
  write_note(fmt::format("the model, {}, is expected before the text", folder));
}

}  // namespace attune::cli

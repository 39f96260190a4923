#include "attune/cli/options/model_argument.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/cli/text_output.h"
#include "attune/io/config_file.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

// Looks for the first of `texts` for which is_looked_for() is true, swaps it with `given`, and moves `given` to the
// front of `texts`. Returns whether there is one.
bool change_places(std::string& given, std::vector<std::string>& texts, bool (*is_looked_for)(const fs::path&)) {
  const auto found = std::ranges::find_if(texts, is_looked_for);
  if (found == texts.end()) return false;
  std::swap(given, *found);
  std::rotate(texts.begin(), found, found + 1);
  return true;
}

}  // namespace

CLI::Option* add_model(CLI::App& command, std::string& folder, const std::string& description) {
  return command.add_option("model", folder, description)->transform(folder_of_model, "")->type_name("TEXT");
}

CLI::Option* add_models(CLI::App& command, const std::string& name, std::vector<std::string>& folders,
                        const std::string& description) {
  return command.add_option(name, folders, description)
      ->transform(folder_of_model, "")
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
  if (is_there(folder)) return;
  const auto names_model = [](const fs::path& text) {
    return is_there(text / kConfigFile) || is_there(text / "model" / kConfigFile);
  };
  if (!change_places(folder, texts, names_model)) return check_model(folder, usage);
  folder = folder_of_model(folder);
  write_note(fmt::format("the model, {}, is expected before the text", folder));
}

void find_tokenizer_argument(std::string& tokenizer, std::vector<std::string>& texts, const std::string& usage) {
  if (is_there(tokenizer)) return;
  if (!change_places(tokenizer, texts, is_there))
    fail<ConfigError>("{}: is no tokenizer and no model folder ({})", tokenizer, usage);
  write_note(fmt::format("the tokenizer, {}, is expected before the text", tokenizer));
}

}  // namespace attune::cli

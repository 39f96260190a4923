#include "attune/cli/run_metrics.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <sstream>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/toml_config.h"
#include "attune/train/validation.h"

namespace attune::cli {
namespace {

bool less_is_better(const std::string& name) {
  for (const char* part : {"loss", "nll", "perplexity", "bits_per"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

std::vector<Json> read_json_lines(const std::filesystem::path& file,
                                  const std::function<void(const Json& json, const std::string& where)>& check) {
  std::istringstream text(read_file(file));
  std::vector<Json> lines;
  int64_t number = 0;
  for (std::string line; std::getline(text, line) && !text.eof();) {
    const std::string where = fmt::format("{}:{}", file.string(), ++number);
    lines.push_back(parse_json(line, where));
    check(lines.back(), where);
  }
  return lines;
}

std::vector<Json> read_metrics(const std::filesystem::path& run) {
  std::error_code ignored;
  const auto path = std::filesystem::is_directory(run, ignored) ? run / "metrics.jsonl" : run;
  std::vector<Json> lines = read_json_lines(path, [](const Json& json, const std::string& where) {
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer())
      fail<DataError>("{}: needs an object with a whole number \"step\"", where);
  });
  if (lines.empty()) fail<DataError>("{}: has no metrics", path.string());
  return lines;
}

std::vector<std::string> names_of(const std::vector<Json>& lines) {
  std::vector<std::string> names;
  for (const Json& line : lines)
    for (const auto& [name, value] : line.items())
      if (name != "step" && name != "time" && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

std::string unit_of(const std::string& name, const std::vector<Json>& lines) {
  if (name.starts_with(kAveragedPrefix)) return unit_of(name.substr(kAveragedPrefix.size()), lines);
  const bool is_loss = name == "loss" || name == "valid_loss";
  if (is_loss && std::ranges::any_of(lines, [](const Json& line) { return line.contains("valid_pearson"); }))
    return "squared error";
  static const std::pair<const char*, const char*> units[] = {{"loss", "nats"},
                                                              {"valid_loss", "nats"},
                                                              {"nll", "nats"},
                                                              {"guided_loss", "nats"},
                                                              {"r_drop_loss", "nats"},
                                                              {"valid_nll", "nats"},
                                                              {"perplexity", "perplexity"},
                                                              {"valid_perplexity", "perplexity"},
                                                              {"valid_bleu", "BLEU"},
                                                              {"valid_accuracy", "share"},
                                                              {"valid_macro_f1", "share"},
                                                              {"valid_pearson", "correlation"},
                                                              {"valid_spearman", "correlation"},
                                                              {"memory_mib", "MiB"},
                                                              {"tensor_memory_mib", "MiB"},
                                                              {"valid_bits_per_character", "bits"},
                                                              {"seconds", "seconds"},
                                                              {"step_seconds", "seconds"},
                                                              {"valid_bits_per_byte", "bits"},
                                                              {"communication_seconds", "seconds"}};
  const auto found = std::ranges::find_if(units, [&](const auto& unit) { return name == unit.first; });
  return found == std::end(units) ? name : found->second;
}

std::optional<double> largest(const std::vector<Json>& lines, const char* name) {
  std::optional<double> found;
  for (const Json& line : lines)
    if (const auto value = line.find(name); value != line.end() && value->is_number())
      found = std::max(found.value_or(value->get<double>()), value->get<double>());
  return found;
}

std::optional<double> first(const std::vector<Json>& lines, const char* name) {
  for (const Json& line : lines)
    if (const auto value = line.find(name); value != line.end() && value->is_number()) return value->get<double>();
  return std::nullopt;
}

std::optional<BestValue> best_of(const std::vector<Json>& lines, const std::string& name) {
  std::optional<BestValue> best;
  for (const Json& line : lines) {
    const auto found = line.find(name);
    if (found == line.end() || !found->is_number()) continue;
    const auto value = found->get<double>();
    // Of equal values, the first where less is better, else the last: the run keeps the model of that step as its best.
    if (!best || (less_is_better(name) ? value < best->value : value >= best->value))
      best = BestValue{value, line["step"].get<int64_t>()};
  }
  return best;
}

std::optional<std::filesystem::path> model_of_run(const std::filesystem::path& run) {
  std::error_code ignored;
  for (const char* name : {"model", "best"})
    if (std::filesystem::exists(run / name / kConfigFile, ignored)) return run / name;
  return std::nullopt;
}

Json flat_config(const std::filesystem::path& run) {
  const Json sections = read_toml(run / "config.toml");
  Json flat = Json::object();
  for (const auto& [section, keys] : sections.items())
    for (const auto& [key, value] : keys.items()) flat[fmt::format("{}.{}", section, key)] = value;
  return flat;
}

}  // namespace attune::cli

#include "attune/train/best_model.h"

#include <fmt/format.h>

#include <cmath>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/sha256.h"
#include "attune/hub/adapter_folder.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"

namespace attune {
namespace {

constexpr const char* kText = "the text for validation";
constexpr const char* kBestFile = "validation.json";
constexpr const char* kStepKey = "step";

// A digest of the content of a file; of what cannot be read twice, as a pipe, of its name.
std::string digest_of(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return sha256_of_file(file);
  return sha256(std::filesystem::absolute(file, ignored).lexically_normal().string());
}

// The first condition that changed, as a sentence; empty: none did.
std::string change_of(const ValidationConditions& conditions) {
  for (const auto& [name, value] : conditions.now.items()) {
    const auto before = conditions.before.find(name);
    if (before == conditions.before.end() || *before == value) continue;
    return name == kText ? fmt::format("{} changed", name)
                         : fmt::format("{} changed from {} to {}", name, show(*before), show(value));
  }
  return "";
}

// Why the best model so far is not to be used; empty where it is.
std::string reason_to_forget(const std::filesystem::path& best, const RunConfig& config,
                             const ValidationConditions& conditions, const TrainingState& state) {
  const ValidationMetric metric = config.best_metric();
  if (state.best_metric != metric)
    return fmt::format("train.best_metric changed from {} to {}", enum_name(state.best_metric), enum_name(metric));
  if (const std::string change = change_of(conditions); !change.empty()) return change;
  try {
    check_parameter_file(best, config.model);
    if (config.lora.on()) {
      read_adapter_config(best / kAdapterFolder);
      [[maybe_unused]] const SafetensorsReader adapters(best / kAdapterFolder / kAdapterFile);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

bool take_if_best(const ValidationReport& report, ValidationMetric metric, TrainingState& state) {
  const double value = value_of(report, metric);
  if (!std::isfinite(value))
    fail<NumericError>("step {}: the validation's {} is {}", state.step, enum_name(metric), value);
  state.last_validation = state.step;
  const bool more = more_is_better(metric);
  const bool better = state.best_step < 0 || (more ? value > state.best_value : value < state.best_value);
  const bool equal = more && value == state.best_value;
  // BLEU stays 0 for a long time while a translator learns: another 0 does not say that nothing improves. Nor does
  // another equal value while the loss falls.
  const bool still_learns = more && (state.best_value == 0 || (equal && report.loss.loss < state.least_loss));
  if (better) {
    state.without_improvement = 0;
  } else if (!still_learns) {
    ++state.without_improvement;
  }
  if (report.loss.loss < state.least_loss) state.least_loss = report.loss.loss;
  if (!better && !equal) return false;  // of equal ones the last, which is no improvement
  state.best_step = state.step;
  state.best_value = value;
  state.best_metric = metric;
  return true;
}

Json validation_conditions(const RunConfig& config) {
  const TrainConfig& train = config.train;
  const Architecture architecture = config.model.architecture;
  Json conditions = {{"data.valid_fraction", config.data.valid_fraction}};
  if (architecture == Architecture::decoder_lm)
    conditions["train.valid_stride"] = train.valid_stride;
  else
    conditions["train.valid_sentences"] = train.valid_sentences;
  if (config.best_metric() == ValidationMetric::loss) conditions["train.label_smoothing"] = train.label_smoothing;
  if (architecture == Architecture::encoder_masked_lm) conditions["train.mask_probability"] = train.mask_probability;
  // Where the training text was prepared, nothing else tells that these changed.
  if (architecture == Architecture::encoder_classifier) {
    conditions["data.format"] = enum_name(config.data.format);
    conditions["data.label_field"] = config.data.label_field;
    conditions["data.text_field"] = config.data.text_field;
    conditions["data.second_text_field"] = config.data.second_text_field;
  }
  if (config.best_metric() == ValidationMetric::bleu) {
    conditions["train.valid_beam_size"] = train.valid_beam_size;
    const Json generation = write_fields(config.generation);
    for (const auto& [name, value] : generation.items())
      if (name != "beam_size") conditions["generation." + name] = value;
  }
  Sha256 text;
  for (const auto* files : {&config.data.valid_source, &config.data.valid_target, &config.data.valid_files})
    for (const std::string& file : *files) text.update(digest_of(file));
  conditions[kText] = text.hex();
  return conditions;
}

std::string forget_lost_best(const std::filesystem::path& best, const RunConfig& config,
                             const ValidationConditions& conditions, TrainingState& state) {
  if (state.best_step < 0) return "";
  const std::string reason = reason_to_forget(best, config, conditions, state);
  if (reason.empty()) return "";
  const int64_t step = state.best_step;
  state.best_step = state.last_validation = -1;
  state.best_value = 0;
  state.without_improvement = 0;
  state.least_loss = TrainingState{}.least_loss;
  return fmt::format("the best model so far, of step {}, is forgotten: {}", step, reason);
}

void write_best_step(const std::filesystem::path& best, const TrainingState& state) {
  write_json_file(best / kBestFile, {{kStepKey, state.best_step}, {enum_name(state.best_metric), state.best_value}});
}

std::string other_best_step(const std::filesystem::path& best, const TrainingState& state) {
  if (!is_there(best / kBestFile)) return "";  // of an earlier version, or killed in between
  Json written;
  try {
    written = read_json_file(best / kBestFile);
  } catch (const FileError&) {
    return "";  // it only serves this message
  }
  const auto step = written.find(kStepKey);
  if (step == written.end() || *step == state.best_step) return "";
  return fmt::format("{} holds the model of step {}, from before the run was resumed; that of step {} is lost",
                     best.string(), show(*step), state.best_step);
}

}  // namespace attune

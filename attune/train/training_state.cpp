#include "attune/train/training_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/version.h"
#include "attune/io/parameter_file.h"

namespace attune {
namespace {

constexpr const char* kParameter = "model.";
constexpr const char* kMean = "adam_m.";
constexpr const char* kSquare = "adam_v.";
constexpr const char* kAverage = "average.";

constexpr std::array<std::string_view, 9> kSections = {
    "attune_version", "run", "tokenizers", "base_model", "base_sha256", "settings", "corpus", "validation", "training"};

const Json& member(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) fail<FileError>("{}: the trainer's state lacks \"{}\"", where, key);
  return *found;
}

// A value that a field cannot have is an error of the file, not of the user's configuration.
template <class Config>
void read_stored_fields(const Json& json, Config& config, const std::string& where) {
  try {
    read_fields(json, config, where);
  } catch (const ConfigError& error) {
    fail<FileError>("{}", error.what());
  }
}

// What may not change between two parts of one run, by the names of the configuration file.
Json identity(const RunConfig& config) {
  Json fields = Json::object();
  const Json model = write_fields(config.model);
  for (const auto& [key, value] : model.items()) fields["model." + key] = value;
  const Json lora = write_fields(config.lora);
  for (const auto& [key, value] : lora.items()) fields["lora." + key] = value;
  fields["train.freeze"] = config.train.freeze;
  fields["train.seed"] = config.train.seed;
  fields["train.batch_tokens"] = config.train.batch_tokens;
  fields["train.moving_average"] = config.train.moving_average > 0 ? "on" : "off";
  return fields;
}

// How the tokenizers came to be. They are made once and kept in the folder of the run, so that a resumed run reads none
// of this; what a user changes here would do nothing.
Json tokenizer_fields(const DataConfig& data) {
  Json fields = {{"data.tokenizer", data.tokenizer},
                 {"data.source_tokenizer", data.source_tokenizer},
                 {"data.target_tokenizer", data.target_tokenizer}};
  if (!data.tokenizer.empty() || !data.source_tokenizer.empty()) return fields;
  fields["data.tokenizer_type"] = enum_name(data.tokenizer_type);
  fields["data.vocab_size"] = data.vocab_size;
  fields["data.joint_vocab"] = data.joint_vocab;
  fields["data.subword_marker"] = data.subword_marker;
  return fields;
}

// What may change between two parts of one run. The user is told, since the run then goes on in another way.
Json settings(const RunConfig& config) {
  Json fields = Json::object();
  const auto add = [&](const std::string& section, const Json& values) {
    for (const auto& [key, value] : values.items()) fields[section + "." + key] = value;
  };
  add("optimizer", write_fields(config.optimizer));
  add("schedule", write_fields(config.schedule));
  if (config.schedule.ends()) {  // the formula has the number of steps
    fields["train.steps"] = config.train.steps;
    fields["train.epochs"] = config.train.epochs;
  }
  fields["train.accumulate"] = config.train.accumulate;
  fields["train.guided_alignment"] = config.train.guided_alignment;
  fields["train.label_smoothing"] = config.train.label_smoothing;
  fields["train.mask_probability"] = config.train.mask_probability;
  fields["train.word_dropout"] = config.train.word_dropout;
  fields["train.subword_sampling"] = config.train.subword_sampling;
  fields["train.layer_dropout"] = config.train.layer_dropout;
  fields["train.r_drop"] = config.train.r_drop;
  fields["train.layer_learning_rate_decay"] = config.train.layer_learning_rate_decay;
  fields["train.moving_average"] = config.train.moving_average;
  fields["train.precision"] = enum_name(config.train.precision);
  return fields;
}

// Whether two values are equal, or two spellings of one path: as it was written and absolute.
bool same_file(const Json& a, const Json& b) {
  if (a == b) return true;
  if (!a.is_string() || !b.is_string()) return false;
  const std::string one = "/" + a.get<std::string>(), other = "/" + b.get<std::string>();
  return one.size() > 1 && other.size() > 1 && (one.ends_with(other) || other.ends_with(one));
}

// The model that adapters were trained on, whose parameters are in no checkpoint.
std::string base_model_of(const RunConfig& config) {
  return config.lora.on() ? config.train.initialize_from : "";
}

void check_base_model(const Json& stored, const TrainingParts& parts, const std::string& where) {
  const Json asked_for = base_model_of(parts.config), name = stored.value("base_model", asked_for);
  if (!same_file(name, asked_for))
    fail<ConfigError>("train.initialize_from = {}: the adapters of the run to be resumed belong to {} ({})",
                      show(asked_for), show(name), where);
  if (stored.value("base_sha256", Json(parts.base_sha256)) != parts.base_sha256)
    fail<ConfigError>("train.initialize_from = {}: the model changed since the run to be resumed was begun ({})",
                      show(asked_for), where);
}

void check_tokenizers(const Json& stored, const RunConfig& config, const std::string& where) {
  const Json asked_for = tokenizer_fields(config.data);
  for (const auto& [name, value] : asked_for.items()) {
    const auto found = stored.find(name);
    if (found != stored.end() && !same_file(*found, value))
      fail<ConfigError>("{} = {}: the run to be resumed was begun with {} and keeps its tokenizers ({})", name,
                        show(value), show(*found), where);
  }
}

std::vector<std::string> changes_of(const Json& stored, const RunConfig& config) {
  std::vector<std::string> changes;
  const Json now = settings(config);
  for (const auto& [name, value] : now.items()) {
    const auto before = stored.find(name);
    if (before != stored.end() && *before != value)
      changes.push_back(
          fmt::format("{} changed from {} to {} in this part of the run", name, show(*before), show(value)));
  }
  return changes;
}

// Adds the choices that the version which wrote the state did not know: they have their defaults.
Json with_defaults(Json stored, const std::string& where) {
  const std::string prefix = "model.";
  Json known = Json::object();
  for (const auto& [name, value] : stored.items())
    if (name.starts_with(prefix)) known[name.substr(prefix.size())] = value;
  TransformerConfig model;
  read_stored_fields(known, model, where + ": run.model");
  const Json all = write_fields(model);
  for (const auto& [name, value] : all.items()) stored[prefix + name] = value;
  const Json lora = write_fields(LoraConfig{});
  for (const auto& [name, value] : lora.items())
    if (!stored.contains("lora." + name)) stored["lora." + name] = value;
  if (!stored.contains("train.freeze")) stored["train.freeze"] = TrainConfig{}.freeze;
  return stored;
}

void check_identity(const Json& run, const RunConfig& config, const std::string& where) {
  const Json asked_for = identity(config), stored = with_defaults(run, where);
  for (const auto& [name, value] : asked_for.items()) {
    const auto found = stored.find(name);
    if (found == stored.end()) fail<FileError>("{}: the trainer's state lacks \"{}\"", where, name);
    if (*found != value)
      fail<ConfigError>("{} = {}: the run to be resumed has {} ({})", name, show(value), show(*found), where);
  }
}

std::string describe(const CorpusSize& size, Architecture architecture) {
  const std::string examples = count_of_examples(size.examples, architecture);
  if (architecture != Architecture::encoder_decoder) return fmt::format("{} with {} tokens", examples, size.tokens);
  return fmt::format("{} with {} and {} tokens", examples, size.tokens, size.target_tokens);
}

// The keys of the digest of a text that is read, and of prepared text: those of shards differ for the same text.
constexpr std::array<const char*, 2> kCorpusDigests = {"sha256", "sha256_of_shards"};

const char* digest_name(const RunConfig& config) {
  return kCorpusDigests[config.data.prepared.empty() ? 0 : 1];
}

Json corpus_fields(const TrainingParts& parts) {
  Json fields = write_fields(parts.corpus);
  fields[digest_name(parts.config)] = parts.corpus_sha256;
  return fields;
}

void check_corpus(Json stored, const TrainingParts& parts, const std::string& where) {
  const Json digest = stored.value(digest_name(parts.config), Json(parts.corpus_sha256));  // of earlier versions: none
  for (const char* name : kCorpusDigests) stored.erase(name);
  CorpusSize expected;
  read_stored_fields(stored, expected, where + ": corpus");
  const Architecture architecture = parts.config.model.architecture;
  const std::string field = parts.config.data.prepared.empty() ? training_files_field(architecture) : "data.prepared";
  if (parts.corpus != expected)
    fail<ConfigError>("{}: the text has {}, the run to be resumed has {} ({})", field,
                      describe(parts.corpus, architecture), describe(expected, architecture), where);
  if (digest != parts.corpus_sha256)
    fail<ConfigError>("{}: the text{} is another than that of the run to be resumed, with the same size ({})", field,
                      parts.config.data.train_alignments.empty() ? "" : ", or its alignments,", where);
}

// Throws FileError for a section that make_checkpoint() does not write: a misspelt one would count as missing.
void refuse_unknown_sections(const Json& stored, const std::string& where) {
  for (const auto& [name, section] : stored.items())
    if (std::ranges::find(kSections, name) == kSections.end())
      fail<FileError>("{}: the trainer's state has an unknown key {}", where, in_quotes(name));
}

constexpr double kLeastLoss = -1e-4;  // of a label: rounding may bring what should be 0 a little below

double least_value(ValidationMetric metric) {
  if (metric == ValidationMetric::loss) return kLeastLoss;
  return metric == ValidationMetric::pearson || metric == ValidationMetric::spearman ? -1 : 0;
}

// Throws FileError for numbers that no run can reach: a file may say anything.
void check(const TrainingState& state, const std::string& where) {
  const auto whole = [&](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      fail<FileError>("{}: training.{} is {}, needs a number from {} to {}", where, name, value, least, most);
  };
  const auto real = [&](const char* name, double value, double least) {
    if (!std::isfinite(value) || value < least)
      fail<FileError>("{}: training.{} is {}, needs a finite number from {}", where, name, value, least);
  };
  constexpr int64_t kMost = int64_t{1} << 53;  // what a number of JSON holds exactly
  const auto seconds = [&](const char* name, double value) {
    if (!(value >= 0 && value <= static_cast<double>(kMost)))
      fail<FileError>("{}: training.{} is {}, needs a number from 0 to {}", where, name, value, kMost);
  };
  whole("step", state.step, 0, kMost);
  whole("epoch", state.epoch, 0, kMost);
  whole("batch", state.batch, 0, kMost);
  seconds("seconds", state.seconds);
  whole("tokens", state.tokens, 0, kMost);
  whole("without_improvement", state.without_improvement, 0, state.step + 1);
  // The first validation is the best so far: both are -1, or neither.
  whole("best_step", state.best_step, state.last_validation < 0 ? -1 : 0, state.step);
  whole("last_validation", state.last_validation, state.best_step, state.step);
  real("best_value", state.best_value, least_value(state.best_metric));
  real("least_loss", state.least_loss, kLeastLoss);
  const LogWindow& window = state.window;
  for (const auto& [name, value] : {std::pair{"window.labels", window.labels},
                                    {"window.tokens", window.tokens},
                                    {"window.bytes_sent", window.bytes_sent}})
    whole(name, value, 0, kMost);
  whole("window.steps", window.steps, 0, state.step);
  const double least_loss = window.labels > 0 ? kLeastLoss * static_cast<double>(window.labels) : 0;
  for (const auto& [name, value] : {std::pair{"window.loss", window.loss},
                                    {"window.nll", window.nll},
                                    {"window.guided_loss", window.guided_loss},
                                    {"window.r_drop_loss", window.r_drop_loss}})
    real(name, value, least_loss);
  real("window.gradient_norm", window.gradient_norm, 0);
  real("window.expert_imbalance", window.expert_imbalance, 0);
  seconds("window.seconds", window.seconds);
  seconds("window.communication_seconds", window.communication_seconds);
  seconds("window.exposed_seconds", window.exposed_seconds);
}

// The parameters in a checkpoint. With adapters only those that are trained: the others are the initial model's.
std::vector<NamedParameter> stored_parameters(const TrainingParts& parts) {
  return parts.config.lora.on() ? trained_parameters(parts.model) : named_parameters(parts.model);
}

// Fills `target` with the part of a tensor in the file that `state` keeps of the parameter.
void load_part(const SafetensorsReader& reader, const std::string& name, const AdamState& state, const Tensor& target,
               const Tensor& parameter) {
  if (state.range.size() == parameter.numel()) return reader.load_into(name, target);
  const Tensor whole = Tensor::empty_like(parameter);
  reader.load_into(name, whole);
  target.copy_from(whole.reshape({whole.numel()}).rows(state.range.begin, state.range.end));
}

}  // namespace

Checkpoint make_checkpoint(const TrainingParts& parts, const std::vector<AdamState>& adam, const TrainingState& state) {
  Checkpoint checkpoint;
  for (const auto& [name, parameter] : stored_parameters(parts))
    checkpoint.tensors.push_back({kParameter + name, parameter->detach()});
  for (const AdamState& s : adam) {
    checkpoint.tensors.push_back({kMean + s.name, s.m});
    checkpoint.tensors.push_back({kSquare + s.name, s.v});
    if (s.average.defined()) checkpoint.tensors.push_back({kAverage + s.name, s.average});
  }
  checkpoint.state = {{"attune_version", version()},
                      {"run", identity(parts.config)},
                      {"tokenizers", tokenizer_fields(parts.config.data)},
                      {"base_model", base_model_of(parts.config)},
                      {"base_sha256", parts.base_sha256},
                      {"settings", settings(parts.config)},
                      {"corpus", corpus_fields(parts)},
                      {"validation", parts.validation},
                      {"training", write_fields(state)}};
  return checkpoint;
}

PrecisionChoice precision_of_checkpoint(const std::filesystem::path& file) {
  const std::string where = file.string();
  const Json stored = checkpoint_state(open_parameters(file));
  TrainConfig train{.precision = PrecisionChoice::automatic};
  if (stored.contains("settings"))
    if (const Json& settings = member(stored, "settings", where); settings.contains("train.precision"))
      read_stored_fields(Json{{"precision", settings.at("train.precision")}}, train, where + ": settings.train");
  return train.precision;
}

RestoredRun restore_checkpoint(const std::filesystem::path& file, const TrainingParts& parts) {
  const SafetensorsReader reader = open_parameters(file);
  const std::string where = file.string();
  const Json stored = checkpoint_state(reader);
  refuse_unknown_sections(stored, where);
  check_identity(member(stored, "run", where), parts.config, where);
  check_corpus(member(stored, "corpus", where), parts, where);
  // Checkpoints that were written before there was a check lack these.
  if (stored.contains("tokenizers")) check_tokenizers(member(stored, "tokenizers", where), parts.config, where);
  check_base_model(stored, parts, where);
  RestoredRun restored;
  if (stored.contains("settings")) restored.changes = changes_of(member(stored, "settings", where), parts.config);
  if (stored.contains("validation")) restored.validation = member(stored, "validation", where);
  TrainingState& state = restored.state;
  read_stored_fields(member(stored, "training", where), state, where + ": training");
  check(state, where);

  for (const auto& [name, parameter] : stored_parameters(parts)) reader.load_into(kParameter + name, *parameter);
  const std::vector<NamedParameter> trained = trained_parameters(parts.model);
  for (size_t i = 0; i < trained.size(); ++i) {
    const Tensor& parameter = *trained[i].tensor;
    const AdamState& s = parts.adam.states()[i];
    load_part(reader, kMean + s.name, s, s.m, parameter);
    load_part(reader, kSquare + s.name, s, s.v, parameter);
    if (s.average.defined()) load_part(reader, kAverage + s.name, s, s.average, parameter);
  }
  parts.adam.set_steps(state.step);
  return restored;
}

}  // namespace attune

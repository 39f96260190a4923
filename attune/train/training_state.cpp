#include "attune/train/training_state.h"

#include "attune/base/version.h"

namespace attune {
namespace {

constexpr const char* kParameter = "model.";
constexpr const char* kMean = "adam_m.";
constexpr const char* kSquare = "adam_v.";
constexpr const char* kAverage = "average.";

const Json& member(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) fail<FileError>("{}: the trainer's state lacks \"{}\"", where, key);
  return *found;
}

// What may not change between two parts of one run, by the names of the configuration file.
Json identity(const RunConfig& config) {
  Json fields = Json::object();
  const Json model = write_fields(config.model);
  for (const auto& [key, value] : model.items()) fields["model." + key] = value;
  fields["train.seed"] = config.train.seed;
  fields["train.batch_tokens"] = config.train.batch_tokens;
  fields["train.moving_average"] = config.train.moving_average > 0 ? "on" : "off";
  return fields;
}

void check_identity(const Json& stored, const RunConfig& config, const std::string& where) {
  const Json asked_for = identity(config);
  for (const auto& [name, value] : asked_for.items()) {
    const auto found = stored.find(name);
    if (found == stored.end()) fail<FileError>("{}: the trainer's state lacks \"{}\"", where, name);
    if (*found != value)
      fail<ConfigError>("{} = {}: the run to be resumed has {} ({})", name, value.dump(), found->dump(), where);
  }
}

std::string describe(const CorpusSize& size, Architecture architecture) {
  const char* examples = example_name(architecture);
  if (architecture != Architecture::encoder_decoder)
    return fmt::format("{} {} with {} tokens", size.examples, examples, size.tokens);
  return fmt::format("{} {} with {} and {} tokens", size.examples, examples, size.tokens, size.target_tokens);
}

void check_corpus(const Json& stored, const TrainingParts& parts, const std::string& where) {
  CorpusSize expected;
  read_fields(stored, expected, where + ": corpus");
  const Architecture architecture = parts.config.model.architecture;
  if (parts.corpus != expected)
    fail<ConfigError>("{}: the text has {}, the run to be resumed has {} ({})", training_files_field(architecture),
                      describe(parts.corpus, architecture), describe(expected, architecture), where);
}

}  // namespace

Checkpoint make_checkpoint(const TrainingParts& parts, const TrainingState& state) {
  Checkpoint checkpoint;
  for (const auto& [name, parameter] : named_parameters(parts.model))
    checkpoint.tensors.push_back({kParameter + name, parameter->detach()});
  for (const AdamState& s : parts.adam.states()) {
    checkpoint.tensors.push_back({kMean + s.name, s.m});
    checkpoint.tensors.push_back({kSquare + s.name, s.v});
    if (s.average.defined()) checkpoint.tensors.push_back({kAverage + s.name, s.average});
  }
  checkpoint.state = {{"attune_version", kVersion},
                      {"run", identity(parts.config)},
                      {"corpus", write_fields(parts.corpus)},
                      {"training", write_fields(state)}};
  return checkpoint;
}

TrainingState restore_checkpoint(const std::filesystem::path& file, const TrainingParts& parts) {
  const SafetensorsReader reader(file);
  const std::string where = file.string();
  const Json stored = checkpoint_state(reader);
  check_identity(member(stored, "run", where), parts.config, where);
  check_corpus(member(stored, "corpus", where), parts, where);
  TrainingState state;
  read_fields(member(stored, "training", where), state, where + ": training");
  if (state.step < 0 || state.epoch < 0 || state.batch < 0)
    fail<FileError>("{}: step {}, epoch {}, batch {}: none may be negative", where, state.step, state.epoch,
                    state.batch);

  for (const auto& [name, parameter] : named_parameters(parts.model)) reader.load_into(kParameter + name, *parameter);
  for (const AdamState& s : parts.adam.states()) {
    reader.load_into(kMean + s.name, s.m);
    reader.load_into(kSquare + s.name, s.v);
    if (s.average.defined()) reader.load_into(kAverage + s.name, s.average);
  }
  parts.adam.set_steps(state.step);
  return state;
}

}  // namespace attune

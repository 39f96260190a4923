#include "attune/train/config.h"

#include <algorithm>
#include <limits>

#include "attune/io/toml_config.h"

namespace attune {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;  // for counts whose only sense of a limit is that sums stay in range

template <class T>
void check_range(const char* field, T value, T least, T most) {
  if (!(value >= least && value <= most))  // also for NaN
    fail<ConfigError>("{} = {}: needs a number from {} to {}", field, value, least, most);
}

// A probability, a decay: 1 itself is out.
void check_below_one(const char* field, double value) {
  if (!(value >= 0 && value < 1)) fail<ConfigError>("{} = {}: needs a number from 0 to below 1", field, value);
}

template <class Config>
void validate_section(const char* section, const Config& config) {
  try {
    config.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}.{}", section, error.what());
  }
}

void check_pairs(const char* source, const char* target, const DataConfig& data, bool training) {
  const size_t sources = (training ? data.train_source : data.valid_source).size();
  const size_t targets = (training ? data.train_target : data.valid_target).size();
  if (sources != targets) fail<ConfigError>("{} names {} files but {} names {}", source, sources, target, targets);
}

void check_data(const DataConfig& data) {
  check_pairs("data.train_source", "data.train_target", data, true);
  check_pairs("data.valid_source", "data.valid_target", data, false);
  if (data.source_tokenizer.empty() != data.target_tokenizer.empty())
    fail<ConfigError>("data.source_tokenizer = \"{}\" and data.target_tokenizer = \"{}\": needs both or none",
                      data.source_tokenizer, data.target_tokenizer);
  if (!data.tokenizer.empty() && !data.source_tokenizer.empty())
    fail<ConfigError>("data.tokenizer = \"{}\" serves both sides, but data.source_tokenizer = \"{}\" is given too",
                      data.tokenizer, data.source_tokenizer);
  if (!data.subword_marker.empty() && data.tokenizer_type != TokenizerKind::whitespace)
    fail<ConfigError>("data.subword_marker = \"{}\" needs data.tokenizer_type = \"whitespace\", found \"{}\"",
                      data.subword_marker, enum_name(data.tokenizer_type));
  check_range<int64_t>("data.vocab_size", data.vocab_size, 8, 1 << 24);
  check_range<int64_t>("data.max_tokens_per_sentence", data.max_tokens_per_sentence, 1, 1 << 20);
}

void check_optimizer(const OptimizerConfig& optimizer) {
  check_below_one("optimizer.beta_1", optimizer.beta_1);
  check_below_one("optimizer.beta_2", optimizer.beta_2);
  if (!(optimizer.epsilon > 0 && optimizer.epsilon < 1))
    fail<ConfigError>("optimizer.epsilon = {}: needs a number between 0 and 1", optimizer.epsilon);
  check_range<double>("optimizer.weight_decay", optimizer.weight_decay, 0, 1e6);
  check_range<double>("optimizer.clip_norm", optimizer.clip_norm, 0, 1e6);
}

void check_schedule(const ScheduleConfig& schedule, int64_t steps) {
  check_range<double>("schedule.learning_rate", schedule.learning_rate, 0, 1e6);
  check_range<double>("schedule.final_learning_rate", schedule.final_learning_rate, 0, schedule.peak());
  check_range<int64_t>("schedule.warmup_steps", schedule.warmup_steps, 0, kMany);
  const std::string kind = enum_name(schedule.kind);
  const bool decays_by_warmup = schedule.kind == ScheduleKind::noam || schedule.kind == ScheduleKind::inverse_sqrt;
  if (decays_by_warmup && schedule.warmup_steps < 1)
    fail<ConfigError>("schedule.warmup_steps = {}: schedule.kind = \"{}\" needs at least 1", schedule.warmup_steps,
                      kind);
  const bool ends = schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::linear;
  if (ends && steps <= schedule.warmup_steps)
    fail<ConfigError>("train.steps = {}: schedule.kind = \"{}\" needs more than schedule.warmup_steps = {}", steps,
                      kind, schedule.warmup_steps);
}

void check_train(const TrainConfig& train) {
  check_range<int64_t>("train.steps", train.steps, 0, kMany);
  check_range<int64_t>("train.epochs", train.epochs, 0, kMany);
  check_range<double>("train.max_minutes", train.max_minutes, 0, 1e9);
  if (train.steps == 0 && train.epochs == 0 && train.max_minutes == 0)
    fail<ConfigError>("train.steps = 0 is no limit: needs train.epochs or train.max_minutes");
  check_range<int64_t>("train.batch_tokens", train.batch_tokens, 1, 1 << 26);
  check_range<int64_t>("train.accumulate", train.accumulate, 1, 1 << 20);
  check_below_one("train.label_smoothing", train.label_smoothing);
  if (train.seed > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail<ConfigError>("train.seed = {}: needs a number below 2^63", train.seed);
  check_range<int64_t>("train.log_every", train.log_every, 1, kMany);
  check_range<int64_t>("train.valid_every", train.valid_every, 0, kMany);
  check_range<int64_t>("train.valid_sentences", train.valid_sentences, 0, kMany);
  check_range<int64_t>("train.valid_beam_size", train.valid_beam_size, 1, GenerationConfig::kMostBeamSize);
  check_range<int64_t>("train.patience", train.patience, 0, kMany);
  check_range<int64_t>("train.checkpoint_every", train.checkpoint_every, 0, kMany);
  check_range<int64_t>("train.checkpoint_every_epochs", train.checkpoint_every_epochs, 0, kMany);
  check_range<int64_t>("train.keep_checkpoints", train.keep_checkpoints, 0, kMany);
  check_range<int64_t>("train.average_checkpoints", train.average_checkpoints, 0, 10000);
  if (train.keep_checkpoints > 0 && train.average_checkpoints > train.keep_checkpoints)
    fail<ConfigError>("train.average_checkpoints = {}: only train.keep_checkpoints = {} are kept",
                      train.average_checkpoints, train.keep_checkpoints);
  check_below_one("train.moving_average", train.moving_average);
  check_range<int64_t>("train.threads", train.threads, 0, 4096);
}

// Vocabulary sizes of 0 come from the tokenizers later; until then one number stands for both.
void check_model(const TransformerConfig& model, const DataConfig& data) {
  if (model.share_embeddings && data.tokenizer.empty() &&
      (!data.joint_vocab || data.source_tokenizer != data.target_tokenizer))
    fail<ConfigError>("model.share_embeddings = true needs one tokenizer: data.joint_vocab = true or data.tokenizer");
  TransformerConfig complete = model;
  const int64_t stand_in = std::max<int64_t>({model.source_vocab, model.target_vocab, 1});
  if (complete.source_vocab == 0) complete.source_vocab = stand_in;
  if (complete.target_vocab == 0) complete.target_vocab = stand_in;
  validate_section("model", complete);
}

// Sections one by one, so that errors read "run.toml: model.d_model: ...".
class SectionReader {
 public:
  SectionReader(const Json& json, const std::string& where) : json_(json), where_(where) {}

  template <class Section>
  void operator()(const char* name, Section& section) {
    names_.emplace_back(name);
    if (const auto found = json_.find(name); found != json_.end()) read_fields(*found, section, where_ + name);
  }

  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names_.begin(), names_.end(), key) != names_.end()) continue;
      const std::string near = nearest_name(key, names_);
      fail<ConfigError>("{}unknown section [{}]{}", where_, key, near.empty() ? "" : ", did you mean [" + near + "]?");
    }
  }

 private:
  const Json& json_;
  const std::string& where_;
  std::vector<std::string> names_;
};

class Describer {
 public:
  template <class Field>
  void operator()(const char* name, Field& field) {
    if constexpr (NamedEnum<Field>) {
      std::string known;
      for (const auto& [value, text] : EnumNames<Field>::values)
        known += (known.empty() ? "" : ", ") + std::string(text);
      line(name, enum_name(field), "  # " + known);
    } else if constexpr (std::is_same_v<Field, AttentionKind>) {
      line(name, write_variant(field), "  # or {kind = \"latent\", latent_dim = 0}");
    } else if constexpr (requires(Describer & v) { visit_fields(field, v); }) {
      text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
      visit_fields(field, *this);
    } else {
      line(name, field, "");
    }
  }
  const std::string& text() const { return text_; }

 private:
  void line(const char* name, const Json& value, const std::string& comment) {
    text_ += fmt::format("{} = {}{}\n", name, write_toml_value(value), comment);
  }
  std::string text_;
};

}  // namespace

void RunConfig::validate() const {
  check_data(data);
  check_model(model, data);
  check_optimizer(optimizer);
  check_train(train);
  check_schedule(schedule, train.steps);
  validate_section("generation", generation);
  GenerationConfig in_validation = generation;
  in_validation.beam_size = train.valid_beam_size;
  validate_section("train.valid_beam_size: generation", in_validation);
}

void RunConfig::validate_for_training() const {
  validate();
  if (data.train_source.empty()) fail<ConfigError>("data.train_source names no file");
  if (data.valid_source.empty() && train.patience > 0)
    fail<ConfigError>("train.patience = {} needs data.valid_source", train.patience);
}

RunConfig read_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Json json = path.empty() ? Json::object() : read_toml(path);
  for (const std::string& assignment : overrides) apply_override(json, assignment);
  const std::string where = path.empty() ? "" : path.string() + ": ";
  RunConfig config;
  SectionReader reader(json, where);
  visit_fields(config, reader);
  reader.refuse_unknown();
  try {
    config.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}{}", where, error.what());
  }
  return config;
}

std::string write_toml(const RunConfig& config) {
  return write_toml(write_fields(config));
}

std::string describe_config() {
  RunConfig defaults;
  Describer describer;
  visit_fields(defaults, describer);
  return describer.text();
}

}  // namespace attune

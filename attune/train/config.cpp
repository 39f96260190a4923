#include "attune/train/config.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/processors.h"
#include "attune/base/with_prefix.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device.h"
#include "attune/tensor/device_error.h"
#include "attune/train/config/config_fields.h"

namespace attune {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;  // limit of counts that need one only so that sums stay in range

template <class Config>
void validate_section(const char* section, const Config& config) {
  with_prefix(std::string(section) + ".", [&] { config.validate(); });
}

void check_pairs(const char* source, const char* target, const DataConfig& data, bool training) {
  const size_t sources = (training ? data.train_source : data.valid_source).size();
  const size_t targets = (training ? data.train_target : data.valid_target).size();
  if (sources != targets) fail<ConfigError>("{} names {} files but {} names {}", source, sources, target, targets);
}

// The default weight is accepted without alignments: every file that a run writes has it.
void check_alignments(const DataConfig& data, const TrainConfig& train) {
  if (!data.train_alignments.empty() && data.train_alignments.size() != data.train_source.size())
    fail<ConfigError>("data.train_alignments names {} files but data.train_source names {}",
                      data.train_alignments.size(), data.train_source.size());
  if (const double weight = train.guided_alignment;
      data.train_alignments.empty() && weight > 0 && weight != TrainConfig().guided_alignment)
    fail<ConfigError>("train.guided_alignment = {}: needs data.train_alignments, which guide the head", weight);
}

void check_sampling(const DataConfig& data, const TrainConfig& train) {
  if (train.subword_sampling > 0 && !data.train_alignments.empty())
    fail<ConfigError>(
        "train.subword_sampling = {}: cannot be used with data.train_alignments, which link the tokens of one "
        "fixed segmentation",
        train.subword_sampling);
}

void check_tokenizers(const DataConfig& data) {
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
}

// A table of learned positions has no row for what is beyond its end.
void check_length(const char* field, int64_t length, const TransformerConfig& model) {
  if (const int64_t longest = model.longest_sequence(); length > longest)
    fail<ConfigError>("{} = {}: model.positions has a table of {} learned positions; needs at most {}", field, length,
                      longest, longest);
}

// data.prepared takes the place of the training text and its tokenizer: neither may be named beside it.
void check_prepared(const DataConfig& data, const GenerationConfig& generation, bool pairs) {
  if (data.prepared.empty()) return;
  for (const auto& [field, files] : {std::pair{"data.train_source", &data.train_source},
                                     {"data.train_target", &data.train_target},
                                     {"data.train_alignments", &data.train_alignments},
                                     {"data.train_files", &data.train_files}})
    if (!files->empty())
      fail<ConfigError>("{} names {}: data.prepared = \"{}\" is the training text", field, files->front(),
                        data.prepared);
  for (const auto& [field, file] : {std::pair{"data.tokenizer", &data.tokenizer},
                                    {"data.source_tokenizer", &data.source_tokenizer},
                                    {"data.target_tokenizer", &data.target_tokenizer}})
    if (!file->empty())
      fail<ConfigError>("{} = \"{}\": data.prepared = \"{}\" has its tokenizer", field, *file, data.prepared);
  if (data.tokenizer_frames_texts)
    fail<ConfigError>("data.tokenizer_frames_texts = true: data.prepared = \"{}\" has bos and eos", data.prepared);
  if (pairs && generation.special_tokens)
    fail<ConfigError>(
        "generation.special_tokens = true: data.prepared = \"{}\" has bos and eos; train on the text itself",
        data.prepared);
  if (!data.second_text_field.empty())
    fail<ConfigError>("data.second_text_field = \"{}\": data.prepared = \"{}\" has single texts",
                      data.second_text_field, data.prepared);
  if (data.valid_fraction > 0)
    fail<ConfigError>("data.valid_fraction = {}: data.prepared = \"{}\" needs {} to validate on", data.valid_fraction,
                      data.prepared, pairs ? "data.valid_source" : "data.valid_files");
}

void check_data(const DataConfig& data, const GenerationConfig& generation, const TransformerConfig& model) {
  check_pairs("data.train_source", "data.train_target", data, true);
  check_pairs("data.valid_source", "data.valid_target", data, false);
  check_tokenizers(data);
  check_prepared(data, generation, model.architecture == Architecture::encoder_decoder);
  check_below_one("data.valid_fraction", data.valid_fraction);
  if (data.text_unit == TextUnit::answer && model.architecture == Architecture::encoder_masked_lm)
    fail<ConfigError>("data.text_unit = \"answer\": architecture = \"encoder_masked_lm\" reads texts");
  for (const auto& [field, files] :
       {std::pair{"data.valid_source", &data.valid_source}, {"data.valid_files", &data.valid_files}})
    if (data.valid_fraction > 0 && !files->empty())
      fail<ConfigError>("data.valid_fraction = {}: cannot be given together with {}", data.valid_fraction, field);
  check_range<int64_t>("data.max_tokens", data.max_tokens, 3, 1 << 20);
  check_range<int64_t>("data.max_tokens_per_sentence", data.max_tokens_per_sentence, 1, 1 << 20);
  if (model.architecture == Architecture::encoder_decoder) {
    check_length("data.max_tokens_per_sentence", data.max_tokens_per_sentence, model);
  } else if (model.architecture != Architecture::decoder_lm) {
    check_length("data.max_tokens", data.max_tokens, model);
  }
}

void check_optimizer(const OptimizerConfig& optimizer) {
  check_below_one("optimizer.beta_1", optimizer.beta_1);
  check_below_one("optimizer.beta_2", optimizer.beta_2);
  if (!(optimizer.epsilon > 0 && optimizer.epsilon < 1))
    fail<ConfigError>("optimizer.epsilon = {}: needs a number between 0 and 1", optimizer.epsilon);
  check_range<double>("optimizer.weight_decay", optimizer.weight_decay, 0, 1e6);
  check_range<double>("optimizer.clip_norm", optimizer.clip_norm, 0, 1e6);
}

void check_schedule(const ScheduleConfig& schedule, const TrainConfig& train) {
  check_range<double>("schedule.learning_rate", schedule.learning_rate, 0, 1e6);
  check_range<double>("schedule.final_learning_rate", schedule.final_learning_rate, 0, schedule.peak());
  check_range<int64_t>("schedule.warmup_steps", schedule.warmup_steps, 0, kMany);
  const std::string kind = enum_name(schedule.kind);
  if (const int64_t least = schedule.least_warmup(); schedule.warmup_steps < least)
    fail<ConfigError>("schedule.warmup_steps = {}: schedule.kind = \"{}\" needs at least {}", schedule.warmup_steps,
                      kind, least);
  if (!schedule.ends()) return;
  if (train.steps == 0 && train.epochs == 0)
    fail<ConfigError>("train.steps = 0: schedule.kind = \"{}\" needs train.steps or train.epochs", kind);
  if (train.steps > 0 && train.steps <= schedule.warmup_steps)
    fail<ConfigError>("train.steps = {}: schedule.kind = \"{}\" needs more than schedule.warmup_steps = {}",
                      train.steps, kind, schedule.warmup_steps);
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
  check_range<double>("train.guided_alignment", train.guided_alignment, 0, 1e6);
  if (!(train.mask_probability > 0 && train.mask_probability <= 1))
    fail<ConfigError>("train.mask_probability = {}: needs a number above 0, at most 1", train.mask_probability);
  check_below_one("train.word_dropout", train.word_dropout);
  check_range<double>("train.subword_sampling", train.subword_sampling, 0, 1);
  check_below_one("train.layer_dropout", train.layer_dropout);
  check_range<double>("train.r_drop", train.r_drop, 0, 1e6);
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
  if (!(train.layer_learning_rate_decay > 0 && train.layer_learning_rate_decay <= 1))
    fail<ConfigError>("train.layer_learning_rate_decay = {}: needs a number above 0, at most 1",
                      train.layer_learning_rate_decay);
  check_range<int64_t>("train.threads", train.threads, 0, kMostThreads);
}

// Vocabulary sizes of 0 and missing labels come from tokenizers and text later; stand-ins are checked in their place.
void check_model(const TransformerConfig& model, const DataConfig& data) {
  if (model.share_embeddings && !data.has_one_tokenizer())
    fail<ConfigError>("model.share_embeddings = true needs one tokenizer: data.joint_vocab = true or data.tokenizer");
  TransformerConfig complete = model;
  const int64_t stand_in = std::max<int64_t>({model.source_vocab, model.target_vocab, 1});
  for (int64_t* vocab : {&complete.source_vocab, &complete.target_vocab, &complete.vocab})
    if (*vocab == 0) *vocab = stand_in;
  if (complete.labels.empty()) complete.labels = complete.default_labels();
  validate_section("model", complete);
  if (model.is_regression() && model.labels.size() > 1)
    fail<ConfigError>("model.labels are {}: with model.label_scores = \"none\", a regression, there is one, {}",
                      fmt::join(model.labels, ", "), "the name of the number");
}

void check_lora(const RunConfig& config) {
  const LoraConfig& lora = config.lora;
  if (!lora.on() && lora.base_precision != BasePrecision::float32)
    fail<ConfigError>("lora.base_precision = {}: needs adapters (lora.rank above 0)", enum_name(lora.base_precision));
  if (!lora.on()) return;
  if (config.train.initialize_from.empty())
    fail<ConfigError>("lora.rank = {}: adapters need a model in train.initialize_from", lora.rank);
  if (config.train.average_checkpoints > 1)
    fail<ConfigError>(
        "train.average_checkpoints = {}: adapters (lora.rank = {}) cannot be averaged, since the product of "
        "two means is not the mean of the products; needs 0 or 1",
        config.train.average_checkpoints, lora.rank);
  const auto* const experts = std::get_if<Experts>(&config.model.feed_forward);
  if (experts != nullptr && experts->bias_rate > 0)
    fail<ConfigError>(
        "model.feed_forward.bias_rate = {}: changes the base model, which adapters (lora.rank = {}) must not; needs 0",
        experts->bias_rate, lora.rank);
}

bool measures(ValidationMetric metric, const TransformerConfig& model) {
  switch (metric) {
    case ValidationMetric::bleu:
      return model.architecture == Architecture::encoder_decoder;
    case ValidationMetric::accuracy:
      return !model.is_regression();
    case ValidationMetric::macro_f1:
      return model.architecture == Architecture::encoder_classifier && !model.is_regression();
    case ValidationMetric::pearson:
    case ValidationMetric::spearman:
      return model.is_regression();
    case ValidationMetric::automatic:
    case ValidationMetric::loss:
      break;
  }
  return true;
}

void check_validation(const TrainConfig& train, const TransformerConfig& model) {
  const Architecture architecture = model.architecture;
  if (!measures(train.best_metric, model))
    fail<ConfigError>("train.best_metric = \"{}\": architecture = \"{}\"{} is not measured by it",
                      enum_name(train.best_metric), enum_name(architecture),
                      model.is_regression() ? " with label_scores = \"none\"" : "");
  if (model.is_regression() && train.label_smoothing > 0)
    fail<ConfigError>(
        "train.label_smoothing = {}: a regression (model.label_scores = \"none\") has no labels to smooth",
        train.label_smoothing);
  if (model.is_regression() && train.r_drop > 0)
    fail<ConfigError>("train.r_drop = {}: a regression (model.label_scores = \"none\") predicts no distribution",
                      train.r_drop);
  const int64_t longest = architecture == Architecture::decoder_lm ? model.context_length : kMany;
  check_range<int64_t>("train.valid_stride", train.valid_stride, 0, longest);
}

// Checks the name alone: check_usable_device() asks whether this machine has the device.
void check_device(const std::string& name) {
  with_prefix("train.", [&] { Device::of_name(name); });
}

// The normalised weight of a token's only expert is always 1 and does not depend on the router: no prediction would
// teach the router. A model that is trained further has a router already, which stays as it is.
void check_router(const RunConfig& config) {
  const auto* const experts = std::get_if<Experts>(&config.model.feed_forward);
  if (experts == nullptr || experts->experts_per_token > 1 || !experts->normalised_weights) return;
  if (config.train.initialize_from.empty())
    fail<ConfigError>(
        "model.feed_forward: experts_per_token = 1 with normalised_weights = true trains no choice of experts, the "
        "weight of the only one is always 1; needs normalised_weights = false, or more experts_per_token");
}

}  // namespace

void RunConfig::validate() const {
  if (model.architecture == Architecture::encoder)
    fail<ConfigError>(
        "model.architecture = \"encoder\": has no task to train for; \"encoder_classifier\" and \"encoder_masked_lm\" "
        "have one");
  refuse_foreign_fields(*this);
  check_data(data, generation, model);
  check_model(model, data);
  check_optimizer(optimizer);
  check_train(train);
  check_alignments(data, train);
  check_sampling(data, train);
  check_device(train.device);
  check_validation(train, model);
  validate_section("lora", lora);
  check_lora(*this);
  check_schedule(schedule, train);
  validate_section("generation", generation);
  GenerationConfig in_validation = generation;
  in_validation.resize_beam(train.valid_beam_size);
  validate_section("train.valid_beam_size: generation", in_validation);
  validate_section("sampling", sampling);
}

void RunConfig::validate_for_training() const {
  validate();
  const bool pairs = model.architecture == Architecture::encoder_decoder;
  if (data.prepared.empty() && (pairs ? data.train_source : data.train_files).empty())
    fail<ConfigError>("{} names no file", training_files_field(model.architecture));
  if (model.architecture == Architecture::encoder_classifier && model.label_scores == LabelScores::sigmoid)
    fail<ConfigError>("model.label_scores = \"sigmoid\": training needs \"softmax\", or \"none\" for regression");
  if (train.patience > 0 && !has_validation())
    fail<ConfigError>("train.patience = {} needs {}{}", train.patience,
                      pairs ? "data.valid_source" : "data.valid_files", " or data.valid_fraction");
  check_router(*this);
}

void check_usable_device(const RunConfig& config) {
  const std::string& name = config.train.device;
  try {
    if (name == "cuda") {
      count_cuda_devices();
    } else {
      Device::named(name);
    }
  } catch (const DeviceError& error) {
    fail<DeviceError>("train.device = {}: {}", name, error.what());
  }
}

bool RunConfig::has_validation() const {
  return !data.valid_source.empty() || !data.valid_files.empty() || data.valid_fraction > 0;
}

ValidationMetric RunConfig::best_metric() const {
  if (train.best_metric != ValidationMetric::automatic) return train.best_metric;
  if (model.architecture == Architecture::encoder_decoder) return ValidationMetric::bleu;
  if (model.is_regression()) return ValidationMetric::pearson;
  return model.architecture == Architecture::encoder_classifier ? ValidationMetric::accuracy : ValidationMetric::loss;
}

std::string precision_note(ProductPrecision precision, const Device& device) {
  if (precision == ProductPrecision::float32 || !device.is_host() || has_bfloat16_products()) return "";
  return "precision bfloat16: this processor has no instructions for it, so that products are formed in "
         "float32 from the same rounded numbers, and take longer than with float32";
}

RunConfig default_config(Architecture architecture) {
  RunConfig config;
  config.model.architecture = architecture;
  if (architecture != Architecture::encoder_decoder) config.train.label_smoothing = 0;
  if (architecture == Architecture::encoder_masked_lm) config.data.text_unit = TextUnit::line;
  return config;
}

RunConfig with_absolute_paths(RunConfig config) {
  const auto complete = [](std::string& path) {
    if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
  };
  DataConfig& data = config.data;
  for (std::vector<std::string>* files : {&data.train_source, &data.train_target, &data.train_alignments,
                                          &data.valid_source, &data.valid_target, &data.train_files, &data.valid_files})
    std::ranges::for_each(*files, complete);
  for (std::string* path :
       {&data.tokenizer, &data.source_tokenizer, &data.target_tokenizer, &data.prepared, &config.train.initialize_from})
    complete(*path);
  return config;
}

std::string count_of_examples(int64_t count, Architecture architecture) {
  const char* name = architecture == Architecture::encoder_decoder      ? "pair"
                     : architecture == Architecture::encoder_classifier ? "text"
                                                                        : "document";
  return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
}

const char* training_files_field(Architecture architecture) {
  return architecture == Architecture::encoder_decoder ? "data.train_source" : "data.train_files";
}

}  // namespace attune

#pragma once
// The configuration of a training run. The file is TOML with one section per struct: [model] [data] [optimizer]
// [schedule] [train] [lora] [generation] [sampling]. model.architecture says which of the fields there are: a field of
// another architecture is refused.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "attune/data/labelled_format.h"
#include "attune/models/config.h"
#include "attune/models/generation_config.h"
#include "attune/models/sampling_config.h"
#include "attune/nn/adapters/lora_config.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/optim/config.h"
#include "attune/text/text_unit.h"

namespace [[gnu::visibility("default")]] attune {

enum class TokenizerKind { unigram, bpe, whitespace, characters, bytes };
enum class ValidationMetric {
  automatic,  // BLEU of translations, the accuracy of a classifier, Pearson's correlation of a regression, the loss of
              // a language model
  bleu,
  loss,
  accuracy,  // of a classifier's labels, else of the next or hidden token
  macro_f1,
  pearson,  // correlations of a regression
  spearman
};

template <>
struct EnumNames<TokenizerKind> {
  static constexpr std::pair<TokenizerKind, const char*> values[] = {{TokenizerKind::unigram, "unigram"},
                                                                     {TokenizerKind::bpe, "bpe"},
                                                                     {TokenizerKind::whitespace, "whitespace"},
                                                                     {TokenizerKind::characters, "characters"},
                                                                     {TokenizerKind::bytes, "bytes"}};
};
template <>
struct EnumNames<ValidationMetric> {
  static constexpr std::pair<ValidationMetric, const char*> values[] = {
      {ValidationMetric::automatic, "automatic"}, {ValidationMetric::bleu, "bleu"},
      {ValidationMetric::loss, "loss"},           {ValidationMetric::accuracy, "accuracy"},
      {ValidationMetric::macro_f1, "macro_f1"},   {ValidationMetric::pearson, "pearson"},
      {ValidationMetric::spearman, "spearman"}};
};
template <>
struct EnumNames<LabelledFormat> {
  static constexpr std::pair<LabelledFormat, const char*> values[] = {{LabelledFormat::automatic, "automatic"},
                                                                      {LabelledFormat::tsv, "tsv"},
                                                                      {LabelledFormat::csv, "csv"},
                                                                      {LabelledFormat::jsonl, "jsonl"}};
};

/// Text files, plain or gzip; paths are taken from the current directory.
struct DataConfig {
  // encoder_decoder: files with one sentence a line.
  std::vector<std::string> train_source;  // line i of file k is translated by line i of train_target's file k
  std::vector<std::string> train_target;
  std::vector<std::string> train_alignments;  // line i of file k: the word alignment (0-0 1-2) of that pair
  std::vector<std::string> valid_source;
  std::vector<std::string> valid_target;
  // The other architectures: texts with labels for encoder_classifier, else text.
  std::vector<std::string> train_files;
  std::vector<std::string> valid_files;
  double valid_fraction = 0;  // without files for validation, the share of the training text that validates: pairs or
                              // labelled texts at even distances, else the last part; 0: none
  LabelledFormat format = LabelledFormat::automatic;  // encoder_classifier
  std::string label_field = "label";                  // of csv and jsonl
  std::string text_field = "text";
  std::string second_text_field = {};     // of pairs of texts, in csv and jsonl; "": texts are single
  TextUnit text_unit = TextUnit::stream;  // of language models: what makes one document
  int64_t max_tokens = 512;  // of encoders, bos and eos included: longer texts are cut, for encoder_masked_lm in parts

  std::string tokenizer;         // a file; "": train.initialize_from's, or trained on the training text
  std::string source_tokenizer;  // encoder_decoder: or one file for each side
  std::string target_tokenizer;
  TokenizerKind tokenizer_type = TokenizerKind::unigram;  // of a tokenizer to be trained
  // The most tokens of such a tokenizer; a small text yields fewer. It does not limit characters and bytes.
  int64_t vocab_size = 8000;
  bool joint_vocab = true;                // encoder_decoder: one tokenizer, trained on both sides
  std::string subword_marker;             // ends a token that the next one continues ("@@"); whitespace only
  bool tokenizer_frames_texts = false;    // texts have the tokenizer's special tokens in place of bos and eos
  int64_t max_tokens_per_sentence = 256;  // encoder_decoder: longer pairs are left out of training
  std::string prepared;                   // a folder of `attune data prepare`, in place of training text and tokenizer;
                                          // the text may be larger than memory

  /// encoder_decoder: whether both sides have one tokenizer, as far as this says it: one file, or one to be learnt.
  bool has_one_tokenizer() const {
    if (!tokenizer.empty()) return true;
    return source_tokenizer == target_tokenizer && (joint_vocab || !source_tokenizer.empty());
  }
  bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
  int64_t steps = 100000;                // updates; 0: no limit, then epochs or max_minutes is needed
  int64_t epochs = 0;                    // passes over the training text; 0: no limit
  double max_minutes = 0;                // of training, without validation; 0: no limit
  std::string initialize_from = {};      // a folder of a model or of a run, see train/initial_model.h
  std::vector<std::string> freeze = {};  // patterns of names of parameters that do not change ("embedding.*")
  double layer_learning_rate_decay = 1;  // factor of the rate from a layer to the one below; 1: all have one rate
  int64_t batch_tokens = 4096;           // of a batch; source or target tokens, whichever are more
  int64_t accumulate = 1;                // batches whose gradients make one update
  double label_smoothing = 0.1;          // 0.1 for encoder_decoder, else 0
  double guided_alignment = 0.1;         // with data.train_alignments: weight of the guided head's loss
  double mask_probability = 0.15;        // encoder_masked_lm: share of tokens that are hidden
  double word_dropout = 0;               // not encoder_masked_lm: share of tokens that are read as unknown in training
  double subword_sampling = 0;  // alpha of segmentations that are drawn anew, see text/subword_sampler.h; 0: off
  double layer_dropout = 0;     // probability that a layer is left out of a training step
  double r_drop = 0;            // weight of the divergence of two passes with other dropout; 0: one pass
  uint64_t seed = 1;            // below 2^63
  int64_t log_every = 50;
  int64_t valid_every = 1000;   // steps; 0: at the end of an epoch
  int64_t valid_sentences = 0;  // only the first so many sentences or texts (not for decoder_lm); 0: all
  int64_t valid_beam_size = 1;  // encoder_decoder: for BLEU in validation; 1: greedy
  int64_t valid_stride = 0;     // decoder_lm: tokens from one window to the next; 0: context_length
  ValidationMetric best_metric = ValidationMetric::automatic;  // decides which model is best, and when patience ends
  int64_t patience = 0;                 // validations without improvement before stopping; 0: off
  int64_t checkpoint_every = 1000;      // steps; 0: at each validation
  int64_t checkpoint_every_epochs = 0;  // 0: off
  int64_t keep_checkpoints = 5;         // how many of the last; 0: all
  int64_t average_checkpoints = 0;      // the final model is the mean of this many; 0 or 1: off
  double moving_average = 0;            // decay of an exponential moving average of the weights; 0: off
  int64_t threads = 0;                  // 0: thread_count() of the caller
  std::string device = "cpu";           // of the model and its training: cpu, cuda (each of several ranks of a machine
                                        // takes another GPU), or cuda:N with the number of a GPU
  bool shard_optimizer = false;         // several ranks: each keeps moments only for its part of the parameters
  bool deterministic_reduction = true;  // several ranks: sums in an order that only their number decides; on GPUs that
                                        // sum by NCCL the order is NCCL's in any case
  bool checkpoint_activations = false;  // layers compute their activations again in the backward pass: less memory
  PrecisionChoice precision = PrecisionChoice::float32;  // of the training step's matrix products
  bool operator==(const TrainConfig&) const = default;
};

struct RunConfig {
  TransformerConfig model;  // vocabulary sizes of 0 are set from the tokenizers, missing labels from the training text
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  LoraConfig lora;              // adapters that are trained in place of the model
  GenerationConfig generation;  // encoder_decoder
  SamplingConfig sampling;      // decoder_lm

  /// Throws ConfigError naming the field and the value. Does not ask for files to train on.
  void validate() const;
  /// The same, and throws ConfigError when no files for training are named, when train.patience is set without a
  /// validation, or when the model cannot be trained. Does not ask whether train.device can be used here, see
  /// check_usable_device().
  void validate_for_training() const;

  bool has_validation() const;
  /// train.best_metric, with `automatic` replaced by the metric of the architecture.
  ValidationMetric best_metric() const;
  bool operator==(const RunConfig&) const = default;
};

/// A note for the user where a device is slower with a precision than with float32; "": none.
std::string precision_note(ProductPrecision precision, const Device& device);

/// The defaults of an architecture. Those of RunConfig{} are encoder_decoder's; for the others label_smoothing is 0,
/// and encoder_masked_lm reads lines.
RunConfig default_config(Architecture architecture);

/// Reads a TOML file, applies "key=value" assignments in order and validates. An empty path means an empty file. A
/// field that neither gives comes from the preset (models/presets.h), else from the model that train.initialize_from
/// names (see train/initial_model.h), else from default_config(). Throws FileError and ConfigError.
RunConfig read_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides = {},
                          std::string_view preset = {});

/// The same for a program that is about to train. Throws DeviceError too when train.device cannot be used here, naming
/// the file or the assignment.
RunConfig read_training_config(const std::filesystem::path& path, const std::vector<std::string>& overrides = {},
                               std::string_view preset = {});

/// Throws DeviceError when train.device cannot be used on this machine. Of "cuda", it asks only whether there is a GPU:
/// which of them a rank takes, and whether that one will do, is for the run to find (train/rank_device.h).
void check_usable_device(const RunConfig& config);

/// The configuration with absolute paths, so that it means the same in every current directory.
RunConfig with_absolute_paths(RunConfig config);

/// The configuration as TOML that read_run_config() reads back as the same, without the fields of other architectures.
std::string write_toml(const RunConfig& config);

/// Every key of the architecture with its value as TOML, and above each a comment with its meaning, unit, choices and
/// default (config_help.cpp).
std::string describe_config(const RunConfig& config);

/// A number of what the architecture learns from: "2 pairs", "2 texts", "1 document".
std::string count_of_examples(int64_t count, Architecture architecture);
/// The field that names the training files: "data.train_source" or "data.train_files".
const char* training_files_field(Architecture architecture);

template <class FieldVisitor>
void visit_fields(DataConfig& c, FieldVisitor& v) {
  v("train_source", c.train_source);
  v("train_target", c.train_target);
  v("train_alignments", c.train_alignments);
  v("valid_source", c.valid_source);
  v("valid_target", c.valid_target);
  v("train_files", c.train_files);
  v("valid_files", c.valid_files);
  v("valid_fraction", c.valid_fraction);
  v("format", c.format);
  v("label_field", c.label_field);
  v("text_field", c.text_field);
  v("second_text_field", c.second_text_field);
  v("text_unit", c.text_unit);
  v("max_tokens", c.max_tokens);
  v("tokenizer", c.tokenizer);
  v("source_tokenizer", c.source_tokenizer);
  v("target_tokenizer", c.target_tokenizer);
  v("tokenizer_type", c.tokenizer_type);
  v("vocab_size", c.vocab_size);
  v("joint_vocab", c.joint_vocab);
  v("subword_marker", c.subword_marker);
  v("tokenizer_frames_texts", c.tokenizer_frames_texts);
  v("max_tokens_per_sentence", c.max_tokens_per_sentence);
  v("prepared", c.prepared);
}

template <class FieldVisitor>
void visit_fields(TrainConfig& c, FieldVisitor& v) {
  v("steps", c.steps);
  v("epochs", c.epochs);
  v("max_minutes", c.max_minutes);
  v("initialize_from", c.initialize_from);
  v("freeze", c.freeze);
  v("layer_learning_rate_decay", c.layer_learning_rate_decay);
  v("batch_tokens", c.batch_tokens);
  v("accumulate", c.accumulate);
  v("label_smoothing", c.label_smoothing);
  v("guided_alignment", c.guided_alignment);
  v("mask_probability", c.mask_probability);
  v("word_dropout", c.word_dropout);
  v("subword_sampling", c.subword_sampling);
  v("layer_dropout", c.layer_dropout);
  v("r_drop", c.r_drop);
  v("seed", c.seed);
  v("log_every", c.log_every);
  v("valid_every", c.valid_every);
  v("valid_sentences", c.valid_sentences);
  v("valid_beam_size", c.valid_beam_size);
  v("valid_stride", c.valid_stride);
  v("best_metric", c.best_metric);
  v("patience", c.patience);
  v("checkpoint_every", c.checkpoint_every);
  v("checkpoint_every_epochs", c.checkpoint_every_epochs);
  v("keep_checkpoints", c.keep_checkpoints);
  v("average_checkpoints", c.average_checkpoints);
  v("moving_average", c.moving_average);
  v("threads", c.threads);
  v("device", c.device);
  v("shard_optimizer", c.shard_optimizer);
  v("deterministic_reduction", c.deterministic_reduction);
  v("checkpoint_activations", c.checkpoint_activations);
  v("precision", c.precision);
}

template <class FieldVisitor>
void visit_fields(RunConfig& c, FieldVisitor& v) {
  v("model", c.model);
  v("data", c.data);
  v("optimizer", c.optimizer);
  v("schedule", c.schedule);
  v("train", c.train);
  v("lora", c.lora);
  v("generation", c.generation);
  v("sampling", c.sampling);
}

}  // namespace attune

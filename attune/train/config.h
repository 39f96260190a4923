#pragma once
// Everything that a training run is told. The file is TOML with one section per struct: [model] [data] [optimizer]
// [schedule] [train] [generation].

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "attune/base/fields.h"
#include "attune/generate/config.h"
#include "attune/models/config.h"
#include "attune/optim/config.h"

namespace attune {

enum class TokenizerKind { unigram, bpe, whitespace };
enum class ValidationMetric { bleu, loss };

template <>
struct EnumNames<TokenizerKind> {
  static constexpr std::pair<TokenizerKind, const char*> values[] = {
      {TokenizerKind::unigram, "unigram"}, {TokenizerKind::bpe, "bpe"}, {TokenizerKind::whitespace, "whitespace"}};
};
template <>
struct EnumNames<ValidationMetric> {
  static constexpr std::pair<ValidationMetric, const char*> values[] = {{ValidationMetric::bleu, "bleu"},
                                                                        {ValidationMetric::loss, "loss"}};
};

/// Text files with one sentence a line; paths are taken from the current directory.
struct DataConfig {
  std::vector<std::string> train_source;  // files; line i of file k is translated by line i of train_target's file k
  std::vector<std::string> train_target;
  std::vector<std::string> valid_source;  // none: no validation
  std::vector<std::string> valid_target;
  std::string tokenizer;         // a file for both sides; "": trained on the training text
  std::string source_tokenizer;  // or one file for each side
  std::string target_tokenizer;
  TokenizerKind tokenizer_type = TokenizerKind::unigram;  // of a tokenizer to be trained
  int64_t vocab_size = 8000;                              // of a tokenizer to be trained
  bool joint_vocab = true;                                // one tokenizer, trained on both sides
  std::string subword_marker;             // ends a token that the next one continues ("@@"); whitespace only
  int64_t max_tokens_per_sentence = 256;  // longer pairs are left out of training
  bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
  int64_t steps = 100000;       // updates; 0: no limit, then epochs or max_minutes is needed
  int64_t epochs = 0;           // passes over the training text; 0: no limit
  double max_minutes = 0;       // of training, without validation; 0: no limit
  int64_t batch_tokens = 4096;  // source or target tokens of a batch, whichever are more
  int64_t accumulate = 1;       // batches whose gradients make one update
  double label_smoothing = 0.1;
  uint64_t seed = 1;  // below 2^63
  int64_t log_every = 50;
  int64_t valid_every = 1000;                             // steps; 0: at the end of an epoch
  int64_t valid_sentences = 0;                            // the first so many; 0: all
  int64_t valid_beam_size = 1;                            // for BLEU in validation
  ValidationMetric best_metric = ValidationMetric::bleu;  // says which model is the best, and when patience ends
  int64_t patience = 0;                                   // validations without improvement before stopping; 0: off
  int64_t checkpoint_every = 1000;                        // steps; 0: at each validation
  int64_t checkpoint_every_epochs = 0;                    // 0: off
  int64_t keep_checkpoints = 5;                           // the last so many; 0: all
  int64_t average_checkpoints = 0;  // the final model is the mean of the last so many; 0 or 1: off
  double moving_average = 0;        // decay of an exponential moving average of the weights; 0: off
  int64_t threads = 0;              // 0: all
  bool operator==(const TrainConfig&) const = default;
};

struct RunConfig {
  TransformerConfig model;  // vocabulary sizes of 0 are set from the tokenizers
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  GenerationConfig generation;

  /// Throws ConfigError naming the field and the value. That data.train_source names files is not asked for here.
  void validate() const;
  /// The same, and files for training have to be named.
  void validate_for_training() const;
  bool operator==(const RunConfig&) const = default;
};

/// Reads a TOML file, applies "key=value" assignments in order and validates. An empty path stands for an empty file.
/// Throws FileError and ConfigError.
RunConfig read_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

/// What read_run_config() reads back as the same configuration.
std::string write_toml(const RunConfig& config);

/// Every key with its default, one a line, as TOML; after enumerations a comment with their values.
std::string describe_config();

template <class FieldVisitor>
void visit_fields(DataConfig& c, FieldVisitor& v) {
  v("train_source", c.train_source);
  v("train_target", c.train_target);
  v("valid_source", c.valid_source);
  v("valid_target", c.valid_target);
  v("tokenizer", c.tokenizer);
  v("source_tokenizer", c.source_tokenizer);
  v("target_tokenizer", c.target_tokenizer);
  v("tokenizer_type", c.tokenizer_type);
  v("vocab_size", c.vocab_size);
  v("joint_vocab", c.joint_vocab);
  v("subword_marker", c.subword_marker);
  v("max_tokens_per_sentence", c.max_tokens_per_sentence);
}

template <class FieldVisitor>
void visit_fields(TrainConfig& c, FieldVisitor& v) {
  v("steps", c.steps);
  v("epochs", c.epochs);
  v("max_minutes", c.max_minutes);
  v("batch_tokens", c.batch_tokens);
  v("accumulate", c.accumulate);
  v("label_smoothing", c.label_smoothing);
  v("seed", c.seed);
  v("log_every", c.log_every);
  v("valid_every", c.valid_every);
  v("valid_sentences", c.valid_sentences);
  v("valid_beam_size", c.valid_beam_size);
  v("best_metric", c.best_metric);
  v("patience", c.patience);
  v("checkpoint_every", c.checkpoint_every);
  v("checkpoint_every_epochs", c.checkpoint_every_epochs);
  v("keep_checkpoints", c.keep_checkpoints);
  v("average_checkpoints", c.average_checkpoints);
  v("moving_average", c.moving_average);
  v("threads", c.threads);
}

template <class FieldVisitor>
void visit_fields(RunConfig& c, FieldVisitor& v) {
  v("model", c.model);
  v("data", c.data);
  v("optimizer", c.optimizer);
  v("schedule", c.schedule);
  v("train", c.train);
  v("generation", c.generation);
}

}  // namespace attune

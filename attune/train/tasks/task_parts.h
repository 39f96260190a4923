#pragma once
// Parts that the training tasks share.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/sha256.h"
#include "attune/data/resegmentation.h"
#include "attune/data/token_corpus.h"
#include "attune/io/model_folder.h"
#include "attune/train/evaluate.h"
#include "attune/train/prepared_folder.h"
#include "attune/train/tasks/training_task.h"
#include "attune/train/tokenizers.h"

namespace attune {

struct TaskInput {
  RunConfig config;
  std::filesystem::path folder;  // of the run
  bool resumes = false;
};

/// One for each architecture, see make_training_task().
std::unique_ptr<TrainingTask> make_translation_task(const TaskInput& input);
std::unique_ptr<TrainingTask> make_classification_task(const TaskInput& input);
std::unique_ptr<TrainingTask> make_masked_language_model_task(const TaskInput& input);
std::unique_ptr<TrainingTask> make_language_model_task(const TaskInput& input);

/// A task for one kind of model; a batch is a list of `Index`.
template <class Model, class Index>
class TaskOf : public TrainingTask {
 public:
  explicit TaskOf(const RunConfig& config) : config_(config) {}

  Module& model() final { return *model_; }
  const TransformerConfig& model_config() const final { return model_->config(); }
  const CorpusReport& corpus() const final { return corpus_; }
  const std::string& corpus_sha256() const final { return corpus_sha256_; }
  void begin_epoch(int64_t epoch) final {
    batches_->begin(epoch);
    if (batches() == 0) fail<DataError>("{}: there is nothing to predict", config_.data.prepared);
  }
  int64_t batches() const final { return batches_->size(); }

 protected:
  using Sampler = typename ShardedBatches<Index>::Sampler;
  /// `beside`: a digest of what belongs to the text and is not in it, such as alignments; "": there is nothing.
  void set_text(TokenCorpus text, Sampler sampler, const std::string& beside = "") {
    corpus_sha256_ = beside.empty() ? text.sha256() : sha256(text.sha256() + beside);
    batches_.emplace(std::move(text), config_.train.seed, std::move(sampler));
  }
  EvaluateOptions evaluate_options(const ValidationWork& work) const {
    return {.batch_tokens = config_.train.batch_tokens,
            .label_smoothing = config_.train.label_smoothing,
            .interrupt = work.interrupt,
            .ranks = work.ranks};
  }

  RunConfig config_;  // with the model complete
  std::shared_ptr<Model> model_;
  CorpusReport corpus_;
  std::string corpus_sha256_;
  std::optional<ShardedBatches<Index>> batches_;  // of the epoch
};

/// The folder data.prepared, or an empty path.
struct Prepared {
  std::filesystem::path folder;
  PreparedIndex index;

  bool given() const { return !folder.empty(); }
  TokenCorpus text() const { return open_prepared(folder, index); }
  CorpusReport report() const;
};

/// Reads the index and checks that the folder was prepared for such a configuration. Throws ConfigError that names the
/// field in which they differ, and FileError.
Prepared read_prepared(const RunConfig& config);

/// Returns the tokenizers of the run's folder where it resumes, else those of the prepared text, else
/// make_tokenizers(). Throws ConfigError when a resumed run has other tokenizers than its prepared text.
TokenizerPair tokenizers_of_run(const TaskInput& input, const Prepared& prepared);

/// Returns a function that forms the batches of a shard as BatchSampler does.
ShardedBatches<int32_t>::Sampler batches_by_length(const TrainConfig& train);
/// What an example adds to its batch.
struct ExampleSize {
  int64_t labels = 0, tokens = 0;  // as in TrainingBatch
  int64_t work = 0;                // tokens that are read, by which a batch is divided among ranks
};

/// Returns make(indices) for a whole batch; for a part, a batch of its examples with the counts of the whole batch.
/// size_of(index) says what an example adds.
template <class Index, class SizeOf, class Make>
TrainingBatch make_part(const std::vector<Index>& indices, const BatchPart& part, SizeOf&& size_of, Make&& make) {
  if (part.ranks == 1) return make(std::span<const Index>(indices));
  int64_t labels = 0, tokens = 0;
  std::vector<int64_t> work;
  for (const Index& index : indices) {
    const ExampleSize size = size_of(index);
    labels += size.labels;
    tokens += size.tokens;
    work.push_back(size.work);
  }
  const auto [begin, end] = examples_of_part(work, part);
  TrainingBatch batch;
  if (begin < end) batch = make(std::span<const Index>(indices).subspan(begin, end - begin));
  batch.labels = labels;
  batch.tokens = tokens;
  return batch;
}

/// How the words of a batch are segmented anew; none where train.subword_sampling is 0. Throws ConfigError unless both
/// tokenizers are SentencePiece models.
std::optional<Resegmentation> resegmentation_of(const RunConfig& config, const Tokenizer& source,
                                                const Tokenizer& target);

/// Sets a vocabulary size to the tokenizer's. Throws ConfigError naming `field` when it is set to another size that is
/// not `allowed`.
void complete_vocab(const char* field, int64_t& size, const Tokenizer& tokenizer,
                    VocabularySize allowed = VocabularySize::exact);

inline std::vector<std::filesystem::path> paths(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// The text of a language model, and the text for validation, held out of it or read from data.valid_files.
struct RunText {
  TokenDocuments train;  // none where it was prepared
  TokenDocuments valid;  // no document: there is no validation
};
RunText load_run_text(const DataConfig& data, const Tokenizer& tokenizer, bool tokenizer_frames_texts);

}  // namespace attune

#pragma once
// What the tasks have in common.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attune/train/tokenizers.h"
#include "attune/train/training_task.h"

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

/// A task for one kind of model, its batches lists of `Index`.
template <class Model, class Index>
class TaskOf : public TrainingTask {
 public:
  explicit TaskOf(const RunConfig& config) : config_(config) {}

  Module& model() final { return *model_; }
  const TransformerConfig& model_config() const final { return model_->config(); }
  const CorpusReport& corpus() const final { return corpus_; }
  int64_t batches() const final { return static_cast<int64_t>(batches_.size()); }

 protected:
  const std::vector<Index>& batch_indices(int64_t batch) const { return batches_.at(static_cast<size_t>(batch)); }
  EvaluateOptions evaluate_options() const {
    return {.batch_tokens = config_.train.batch_tokens, .label_smoothing = config_.train.label_smoothing};
  }

  RunConfig config_;  // with the model complete
  std::shared_ptr<Model> model_;
  CorpusReport corpus_;
  std::vector<std::vector<Index>> batches_;  // of the epoch
};

/// What an example adds to its batch.
struct ExampleSize {
  int64_t labels = 0, tokens = 0;  // as in TrainingBatch
  int64_t work = 0;                // tokens that are read, by which a batch is divided among ranks
};

/// make(indices) where that is the whole batch; of a part its examples alone, with the counts of the whole batch.
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

/// Sets a vocabulary size to the tokenizer's. Throws ConfigError naming `field` when it says something else.
void complete_vocab(const char* field, int64_t& size, const Tokenizer& tokenizer);

inline std::vector<std::filesystem::path> paths(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// The text of a language model, and what is held out of it or read from data.valid_files for validation.
struct RunText {
  TokenDocuments train;
  TokenDocuments valid;  // no document: there is no validation
};
RunText load_run_text(const DataConfig& data, const Tokenizer& tokenizer);

/// The number of tokens in each document as BatchSampler takes them.
std::vector<std::pair<int32_t, int32_t>> lengths_of(const TokenDocuments& documents);

}  // namespace attune

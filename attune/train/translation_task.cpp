// Translation: sentence pairs for an encoder-decoder.

#include <optional>

#include "attune/data/batch_sampler.h"
#include "attune/generate/model_files.h"
#include "attune/train/batch_loss.h"
#include "attune/train/task_parts.h"
#include "attune/train/translation_validation.h"

namespace attune {
namespace {

CorpusSize size_of(const ParallelCorpus& corpus) {
  CorpusSize size{.examples = static_cast<int64_t>(corpus.examples.size())};
  for (const ParallelExample& e : corpus.examples) {
    size.tokens += static_cast<int64_t>(e.source.size());
    size.target_tokens += static_cast<int64_t>(e.target.size());
  }
  return size;
}

class TranslationTask final : public TaskOf<Transformer, int32_t> {
 public:
  explicit TranslationTask(const TaskInput& input)
      : TaskOf(input.config), tokenizers_(input.resumes ? load_tokenizers(input.folder) : make_tokenizers(config_)) {
    const DataConfig& data = config_.data;
    text_ = load_parallel_corpus(paths(data.train_source), paths(data.train_target), *tokenizers_.source,
                                 *tokenizers_.target, {.max_tokens = data.max_tokens_per_sentence});
    if (!data.valid_source.empty()) validation_.emplace(config_, tokenizers_);
    sampler_.emplace(lengths_of(text_.examples),
                     BatchSamplerOptions{.max_tokens = config_.train.batch_tokens, .seed = config_.train.seed});
    corpus_ = {.size = size_of(text_),
               .skipped_long = text_.skipped_long,
               .skipped_empty = text_.skipped_empty,
               .validation_examples = validation_ ? validation_->sentences() : 0};
    complete_vocab("source_vocab", config_.model.source_vocab, *tokenizers_.source);
    complete_vocab("target_vocab", config_.model.target_vocab, *tokenizers_.target);
    model_ = build_transformer(config_.model, config_.train.seed);
  }

  void begin_epoch(int64_t epoch) override { batches_ = sampler_->epoch(epoch); }
  TrainingBatch batch(int64_t index, uint64_t /*forward*/, const BatchPart& part) const override {
    const auto size = [&](int32_t i) {
      const ParallelExample& example = text_.examples[static_cast<size_t>(i)];
      const auto source = std::ssize(example.source), target = std::ssize(example.target);
      return ExampleSize{.labels = target, .tokens = target, .work = source + target};
    };
    return make_part(batch_indices(index), part, size, [&](std::span<const int32_t> indices) {
      return training_batch(*model_, pack(text_.examples, indices, tokenizers_.target->bos_id()));
    });
  }
  ValidationReport validate() override { return validation_->measure(model_); }
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizers_.source, *tokenizers_.target, config_.generation);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizers_.source, *tokenizers_.target);
  }

 private:
  TokenizerPair tokenizers_;
  ParallelCorpus text_;
  std::optional<TranslationValidation> validation_;
  std::optional<BatchSampler> sampler_;
};

}  // namespace

std::unique_ptr<TrainingTask> make_translation_task(const TaskInput& input) {
  return std::make_unique<TranslationTask>(input);
}

}  // namespace attune

// Masked language modelling: the hidden tokens of a text for an encoder that is to become a classifier.

#include <algorithm>
#include <optional>

#include "attune/data/batch_sampler.h"
#include "attune/generate/model_files.h"
#include "attune/train/batch_loss.h"
#include "attune/train/task_parts.h"

namespace attune {
namespace {

constexpr uint64_t kValidationSeed = 0x76616c6964;  // every run hides the same places

// Documents as sequences that fit the encoder: bos, at most max_tokens - 2 tokens, eos, as a classifier reads them.
// What has no token to be hidden is left out and counted.
TokenDocuments cut(const TokenDocuments& documents, const Tokenizer& tokenizer, int64_t max_tokens, int64_t& skipped) {
  const auto ordinary = [&](int32_t id) {
    return id != tokenizer.pad_id() && id != tokenizer.unk_id() && id != tokenizer.bos_id() && id != tokenizer.eos_id();
  };
  TokenDocuments sequences;
  const auto room = static_cast<size_t>(max_tokens - 2);
  for (int64_t i = 0; i < documents.documents(); ++i) {
    std::span<const int32_t> document = documents.document(i);
    if (!document.empty() && document.front() == tokenizer.bos_id()) document = document.subspan(1);
    if (!document.empty() && document.back() == tokenizer.eos_id()) document = document.first(document.size() - 1);
    for (; !document.empty(); document = document.subspan(std::min(room, document.size()))) {
      const auto part = document.first(std::min(room, document.size()));
      if (std::ranges::none_of(part, ordinary)) {
        ++skipped;
        continue;
      }
      sequences.ids.push_back(tokenizer.bos_id());
      sequences.ids.insert(sequences.ids.end(), part.begin(), part.end());
      sequences.ids.push_back(tokenizer.eos_id());
      sequences.offsets.push_back(sequences.tokens());
    }
  }
  return sequences;
}

// The sequences of a rank.
MaskedBatch part_of(const MaskedBatch& batch, const BatchPart& part) {
  std::vector<int64_t> lengths;
  for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) lengths.push_back(batch.offsets[i + 1] - batch.offsets[i]);
  const auto [first, last] = examples_of_part(lengths, part);
  const int32_t begin = batch.offsets[first], end = batch.offsets[last];
  MaskedBatch mine;
  mine.tokens.assign(batch.tokens.begin() + begin, batch.tokens.begin() + end);
  for (size_t i = first; i <= last; ++i) mine.offsets.push_back(batch.offsets[i] - begin);
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.rows[i] < begin || batch.rows[i] >= end) continue;
    mine.rows.push_back(batch.rows[i] - begin);
    mine.labels.push_back(batch.labels[i]);
  }
  return mine;
}

class MaskedLanguageModelTask final : public TaskOf<EncoderMaskedLm, int32_t> {
 public:
  explicit MaskedLanguageModelTask(const TaskInput& input)
      : TaskOf(input.config),
        tokenizer_(input.resumes ? load_tokenizers(input.folder).source : make_tokenizer(config_)),
        masking_(MaskingOptions::for_tokenizer(*tokenizer_)) {
    masking_.probability = config_.train.mask_probability;
    read();
    sampler_.emplace(lengths_of(sequences_),
                     BatchSamplerOptions{.max_tokens = config_.train.batch_tokens, .seed = config_.train.seed});
    complete_vocab("vocab", config_.model.vocab, *tokenizer_);
    model_ = build_encoder_masked_lm(config_.model, config_.train.seed);
  }

  void begin_epoch(int64_t epoch) override { batches_ = sampler_->epoch(epoch); }
  // Which tokens are hidden depends on the whole batch: a rank masks all of it and works on its sequences.
  TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part) const override {
    MaskedBatch whole = mask(sequences_, batch_indices(index), config_.train.seed, forward);
    const auto labels = std::ssize(whole.labels), tokens = std::ssize(whole.tokens);
    MaskedBatch mine = part.ranks == 1 ? std::move(whole) : part_of(whole, part);
    TrainingBatch batch;
    if (!mine.labels.empty()) batch = training_batch(*model_, std::move(mine));
    batch.labels = labels;
    batch.tokens = tokens;
    return batch;
  }
  ValidationReport validate() override {
    return {.loss = evaluate(*model_, *validation_, evaluate_options()), .examples = corpus_.validation_examples};
  }
  void save_model(const std::filesystem::path& folder) override { save_model_folder(folder, *model_, *tokenizer_); }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizer_, *tokenizer_);
  }

 private:
  void read();
  // The chosen sequences, packed and masked.
  MaskedBatch mask(const TokenDocuments& sequences, std::span<const int32_t> indices, uint64_t seed,
                   uint64_t forward) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  MaskingOptions masking_;
  TokenDocuments sequences_;
  std::optional<MaskedBatch> validation_;  // all of it
  std::optional<BatchSampler> sampler_;
};

void MaskedLanguageModelTask::read() {
  const DataConfig& data = config_.data;
  const RunText text = load_run_text(data, *tokenizer_);
  sequences_ = cut(text.train, *tokenizer_, data.max_tokens, corpus_.skipped_empty);
  if (sequences_.documents() == 0)
    fail<DataError>("{}: has no token that could be hidden", fmt::join(data.train_files, ", "));
  corpus_.size = {.examples = text.train.documents(), .tokens = sequences_.tokens()};
  if (text.valid.documents() == 0) return;

  int64_t skipped = 0;
  const TokenDocuments valid = cut(text.valid, *tokenizer_, data.max_tokens, skipped);
  if (valid.documents() == 0)
    fail<DataError>("{}: has no token that could be hidden for validation",
                    fmt::join(data.valid_files.empty() ? data.train_files : data.valid_files, ", "));
  const int64_t limit = config_.train.valid_sentences > 0 ? config_.train.valid_sentences : valid.documents();
  std::vector<int32_t> first;
  for (int32_t i = 0; i < std::min(limit, valid.documents()); ++i) first.push_back(i);
  validation_ = mask(valid, first, kValidationSeed, 0);
  corpus_.validation_examples = static_cast<int64_t>(first.size());
}

MaskedBatch MaskedLanguageModelTask::mask(const TokenDocuments& sequences, std::span<const int32_t> indices,
                                          uint64_t seed, uint64_t forward) const {
  std::vector<int32_t> tokens, offsets = {0};
  for (const int32_t index : indices) {
    const std::span<const int32_t> sequence = sequences.document(index);
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
    offsets.push_back(static_cast<int32_t>(tokens.size()));
  }
  MaskingOptions options = masking_;
  options.seed = seed;
  options.step = static_cast<int64_t>(forward);
  return mask_tokens(tokens, offsets, options);
}

}  // namespace

std::unique_ptr<TrainingTask> make_masked_language_model_task(const TaskInput& input) {
  return std::make_unique<MaskedLanguageModelTask>(input);
}

}  // namespace attune

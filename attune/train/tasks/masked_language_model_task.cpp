// Masked language modelling: the hidden tokens of a text for an encoder that is to become a classifier.

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "attune/base/fail.h"
#include "attune/data/sequence_cutter.h"
#include "attune/io/model_folder.h"
#include "attune/train/batch_loss.h"
#include "attune/train/tasks/task_parts.h"

namespace attune {
namespace {

constexpr uint64_t kValidationSeed = 0x76616c6964;  // every run hides the same places

// Cuts documents into sequences. Those without a token that could be hidden are left out and counted.
TokenDocuments cut(const TokenDocuments& documents, const Tokenizer& tokenizer, const DataConfig& data,
                   int64_t& skipped) {
  TokenDocuments sequences;
  SequenceCutter cutter(
      tokenizer, data.max_tokens,
      [&](std::span<const int32_t> sequence) {
        sequences.ids.insert(sequences.ids.end(), sequence.begin(), sequence.end());
        sequences.offsets.push_back(sequences.tokens());
      },
      data.tokenizer_frames_texts);
  for (int64_t i = 0; i < documents.documents(); ++i) {
    cutter.add(documents.document(i));
    cutter.end_document();
  }
  skipped += cutter.skipped();
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
  explicit MaskedLanguageModelTask(const TaskInput& input) : TaskOf(input.config) {
    const Prepared prepared = read_prepared(config_);
    tokenizer_ = tokenizers_of_run(input, prepared).source;
    masking_ = MaskingOptions::for_tokenizer(*tokenizer_);
    masking_.probability = config_.train.mask_probability;
    read(prepared);
    complete_vocab("vocab", config_.model.vocab, *tokenizer_, vocabulary_size(config_.data.tokenizer_frames_texts));
    model_ = build_encoder_masked_lm(config_.model, config_.train.seed);
  }

  // Which tokens are hidden depends on the whole batch: a rank masks all of it and works on its sequences.
  TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part) const override {
    const auto [shard, indices] = batches_->at(index);
    MaskedBatch whole = mask(pack_sequences(*shard, indices), config_.train.seed, forward);
    if (whole.rows.empty()) fail<DataError>("{}: a batch has no token that could be hidden", shard->name());
    const auto labels = std::ssize(whole.labels), tokens = std::ssize(whole.tokens);
    MaskedBatch mine = part.ranks == 1 ? std::move(whole) : part_of(whole, part);
    TrainingBatch batch;
    if (!mine.labels.empty()) batch = training_batch(*model_, std::move(mine));
    batch.labels = labels;
    batch.tokens = tokens;
    return batch;
  }
  ValidationReport validate(const ValidationWork& work) override {
    return {.loss = evaluate(*model_, *validation_, evaluate_options(work)), .examples = corpus_.validation_examples};
  }
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizer_, config_.data.tokenizer_frames_texts);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizer_, *tokenizer_);
  }

 private:
  void read(const Prepared& prepared);
  MaskedBatch mask(const TokenDocuments& sequences, uint64_t seed, uint64_t forward) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  MaskingOptions masking_;
  std::optional<MaskedBatch> validation_;  // all of it
};

void MaskedLanguageModelTask::read(const Prepared& prepared) {
  const DataConfig& data = config_.data;
  const RunText text = load_run_text(data, *tokenizer_, false);  // the cutter frames sequences
  if (prepared.given()) {
    corpus_ = prepared.report();
    set_text(prepared.text(), batches_by_length(config_.train));
  } else {
    TokenDocuments sequences = cut(text.train, *tokenizer_, data, corpus_.skipped_empty);
    if (sequences.documents() == 0)
      fail<DataError>("{}: has no token that could be hidden", fmt::join(data.train_files, ", "));
    corpus_.size = {.examples = text.train.documents(), .tokens = sequences.tokens()};
    set_text(TokenCorpus(TokenShard({.sequences = std::move(sequences), .labels = {}},
                                    {.vocab = {tokenizer_->vocab_size(), 1}})),
             batches_by_length(config_.train));
  }
  if (text.valid.documents() == 0) return;

  int64_t skipped = 0;
  TokenDocuments valid = cut(text.valid, *tokenizer_, data, skipped);
  if (valid.documents() == 0)
    fail<DataError>("{}: has no token that could be hidden for validation",
                    fmt::join(data.valid_files.empty() ? data.train_files : data.valid_files, ", "));
  const int64_t limit = config_.train.valid_sentences > 0 ? config_.train.valid_sentences : valid.documents();
  valid.offsets.resize(static_cast<size_t>(std::min(limit, valid.documents())) + 1);
  valid.ids.resize(static_cast<size_t>(valid.offsets.back()));
  validation_ = mask(valid, kValidationSeed, 0);
  corpus_.validation_examples = valid.documents();
}

MaskedBatch MaskedLanguageModelTask::mask(const TokenDocuments& sequences, uint64_t seed, uint64_t forward) const {
  const std::vector<int32_t> offsets(sequences.offsets.begin(), sequences.offsets.end());
  MaskingOptions options = masking_;
  options.seed = seed;
  options.step = static_cast<int64_t>(forward);
  return mask_tokens(sequences.ids, offsets, options);
}

}  // namespace

std::unique_ptr<TrainingTask> make_masked_language_model_task(const TaskInput& input) {
  return std::make_unique<MaskedLanguageModelTask>(input);
}

}  // namespace attune

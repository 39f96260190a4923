// Translation: sentence pairs for an encoder-decoder.

#include <fmt/format.h>

#include <optional>

#include "attune/base/fail.h"
#include "attune/base/sha256.h"
#include "attune/data/word_dropout.h"
#include "attune/io/model_folder.h"
#include "attune/io/text_style_file.h"
#include "attune/train/batch_loss.h"
#include "attune/train/tasks/task_parts.h"
#include "attune/train/tasks/translation_validation.h"

namespace attune {
namespace {

class TranslationTask final : public TaskOf<Transformer, int32_t> {
 public:
  explicit TranslationTask(const TaskInput& input) : TaskOf(input.config) {
    const Prepared prepared = read_prepared(config_);
    tokenizers_ = tokenizers_of_run(input, prepared);
    if (config_.model.share_embeddings && tokenizers_.source != tokenizers_.target)
      fail<ConfigError>("model.share_embeddings = true needs one tokenizer, there is one for each side");
    if (prepared.given()) {
      set_text(prepared.text(), batches_by_length(config_.train));
      corpus_ = prepared.report();
    } else {
      load();
    }
    if (config_.has_validation()) {
      validation_.emplace(config_, tokenizers_);
      corpus_.validation_examples = validation_->sentences();
    }
    const VocabularySize allowed = vocabulary_size(config_.generation.special_tokens);
    complete_vocab("source_vocab", config_.model.source_vocab, *tokenizers_.source, allowed);
    complete_vocab("target_vocab", config_.model.target_vocab, *tokenizers_.target, allowed);
    model_ = build_transformer(config_.model, config_.train.seed);
    resegmentation_ = resegmentation_of(config_, *tokenizers_.source, *tokenizers_.target);
  }

  TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part) const override {
    const auto [shard, all] = batches_->at(index);
    const auto size = [&, &shard = *shard](int32_t i) {
      int64_t source = shard.length(i, 0), target = shard.length(i, 1);
      if (resegmentation_) {
        const PackedBatch pair = pairs_of(shard, {&i, 1}, forward);
        source = pair.source_tokens();
        target = pair.target_tokens();
      }
      return ExampleSize{.labels = target, .tokens = target, .work = source + target};
    };
    return make_part(all, part, size, [&, &shard = *shard](std::span<const int32_t> indices) {
      PackedBatch pairs = pairs_of(shard, indices, forward);
      WordDropout words(config_.train.word_dropout, config_.train.seed, forward_of(forward, part));
      words.hide(pairs.source, *tokenizers_.source);
      words.hide(pairs.target_input, *tokenizers_.target);
      if (!alignments_) return training_batch(*model_, std::move(pairs));
      PackedLinks links = alignments_->pack(indices, pairs.target_offsets);
      return training_batch(*model_, std::move(pairs),
                            {.links = {.offsets = std::move(links.offsets), .keys = std::move(links.sources)},
                             .weight = config_.train.guided_alignment});
    });
  }
  ValidationReport validate(const ValidationWork& work) override { return validation_->measure(model_, work); }
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizers_.source, *tokenizers_.target, config_.generation);
    if (source_text_) write_source_text(folder, *source_text_);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizers_.source, *tokenizers_.target);
  }

 private:
  void load();
  PackedBatch pairs_of(const TokenShard& shard, std::span<const int32_t> indices, uint64_t forward) const;

  TokenizerPair tokenizers_;
  std::optional<TextStyle> source_text_;       // none of text that was prepared
  std::optional<TokenAlignments> alignments_;  // of the examples, with data.train_alignments
  std::optional<Resegmentation> resegmentation_;
  std::optional<TranslationValidation> validation_;
};

// The examples as the model reads them in a forward pass, before word dropout.
PackedBatch TranslationTask::pairs_of(const TokenShard& shard, std::span<const int32_t> indices,
                                      uint64_t forward) const {
  PackedBatch pairs = pack_pairs(shard, indices, pair_frame(config_.generation).decoder_start(*tokenizers_.target));
  return resegmentation_ ? (*resegmentation_)(pairs, indices, forward) : pairs;
}

void TranslationTask::load() {
  const DataConfig& data = config_.data;
  source_text_ = text_style_of(data.train_source);
  const ParallelCorpus text =
      load_parallel_corpus(paths(data.train_source), paths(data.train_target), *tokenizers_.source, *tokenizers_.target,
                           {.frame = pair_frame(config_.generation),
                            .max_tokens = data.max_tokens_per_sentence,
                            .held_out = data.valid_fraction,
                            .alignments = paths(data.train_alignments)});
  std::string links;  // a digest of them, where there are some
  if (!data.train_alignments.empty()) {
    alignments_.emplace();
    Sha256 hash;
    for (const ParallelExample& example : text.examples) {
      alignments_->add(example.links);
      hash.update(fmt::format("{} ", example.links.size()));
      hash.update(example.links.data(), example.links.size() * sizeof(TokenLink));
    }
    links = hash.hex();
    if (config_.model.alignment_layer == 0) config_.model.alignment_layer = config_.model.of_decoder().layers;
  }
  TokenShard shard(examples_of(text.examples),
                   {.sides = 2, .vocab = {tokenizers_.source->vocab_size(), tokenizers_.target->vocab_size()}});
  corpus_ = {.size = {.examples = shard.examples(),
                      .tokens = shard.tokens_of_side(0),
                      .target_tokens = shard.tokens_of_side(1)},
             .skipped_long = text.skipped_long,
             .skipped_empty = text.skipped_empty,
             .unaligned = text.unaligned};
  set_text(TokenCorpus(std::move(shard)), batches_by_length(config_.train), links);
}

}  // namespace

std::unique_ptr<TrainingTask> make_translation_task(const TaskInput& input) {
  return std::make_unique<TranslationTask>(input);
}

}  // namespace attune

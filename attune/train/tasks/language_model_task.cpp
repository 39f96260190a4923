// Language modelling: the next token of a text for a decoder.

#include <numbers>

#include "attune/base/fail.h"
#include "attune/data/window_sampler.h"
#include "attune/data/word_dropout.h"
#include "attune/io/model_folder.h"
#include "attune/text/character_tokenizer.h"
#include "attune/train/batch_loss.h"
#include "attune/train/tasks/task_parts.h"

namespace attune {
namespace {

using Windows = std::vector<std::vector<Window>>;

// The windows of each batch that have something to predict.
Windows with_labels(const TokenShard& shard, Windows batches) {
  for (std::vector<Window>& batch : batches)
    std::erase_if(batch, [&](const Window& window) { return shard.ignored_labels(window) == window.length; });
  std::erase_if(batches, [](const std::vector<Window>& batch) { return batch.empty(); });
  return batches;
}

class LanguageModelTask final : public TaskOf<DecoderLm, Window> {
 public:
  explicit LanguageModelTask(const TaskInput& input) : TaskOf(input.config) {
    const Prepared prepared = read_prepared(config_);
    tokenizer_ = tokenizers_of_run(input, prepared).source;
    const bool frames = config_.data.tokenizer_frames_texts;
    RunText text = load_run_text(config_.data, *tokenizer_, frames);
    valid_ = std::move(text.valid);
    const int64_t context = config_.model.context_length;
    const WindowSamplerOptions options{
        .context_length = context, .max_tokens = config_.train.batch_tokens, .seed = config_.train.seed};
    if (prepared.given()) {
      options.validate();
      corpus_ = prepared.report();
    } else {
      [[maybe_unused]] const WindowSampler windows(text.train, options);  // throws where there is nothing to predict
      corpus_.size = {.examples = text.train.documents(), .tokens = text.train.tokens()};
    }
    set_text(prepared.given() ? prepared.text()
                              : TokenCorpus(TokenShard({.sequences = std::move(text.train), .labels = {}},
                                                       {.vocab = {tokenizer_->vocab_size(), 1}})),
             [options](const TokenShard& shard, int64_t epoch) {
               const WindowSampler sampler({shard.offsets().begin(), shard.offsets().end()}, options);
               return with_labels(shard, sampler.epoch(epoch));
             });
    if (valid_.documents() > 0 && sliding_windows(valid_, context, context).empty())
      fail<DataError>("the validation text has {} tokens in {} documents: none has a token before it", valid_.tokens(),
                      valid_.documents());
    corpus_.validation_examples = valid_.documents();
    complete_vocab("vocab", config_.model.vocab, *tokenizer_, vocabulary_size(frames));
    model_ = build_decoder_lm(config_.model, config_.train.seed);
  }

  TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part) const override {
    const auto [shard, all] = batches_->at(index);
    const auto size = [&shard = *shard](const Window& w) {
      return ExampleSize{.labels = w.length - shard.ignored_labels(w), .tokens = w.length, .work = w.length};
    };
    return make_part(all, part, size, [&, &shard = *shard](std::span<const Window> windows) {
      LanguageModelBatch batch = pack_windows(shard, windows);
      WordDropout(config_.train.word_dropout, config_.train.seed, forward_of(forward, part))
          .hide(batch.input, *tokenizer_);
      return training_batch(*model_, std::move(batch));
    });
  }
  ValidationReport validate(const ValidationWork& work) override {
    ValidationReport report{.loss = evaluate(*model_, valid_, config_.train.valid_stride, evaluate_options(work)),
                            .examples = valid_.documents()};
    const double bits = report.loss.nll / std::numbers::ln2;  // of a token
    if (dynamic_cast<const CharacterTokenizer*>(tokenizer_.get()) != nullptr) report.bits_per_character = bits;
    if (dynamic_cast<const ByteTokenizer*>(tokenizer_.get()) != nullptr) report.bits_per_byte = bits;
    return report;
  }
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizer_, config_.sampling, config_.data.text_unit,
                      config_.data.tokenizer_frames_texts);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizer_, *tokenizer_);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  TokenDocuments valid_;
};

}  // namespace

std::unique_ptr<TrainingTask> make_language_model_task(const TaskInput& input) {
  return std::make_unique<LanguageModelTask>(input);
}

}  // namespace attune

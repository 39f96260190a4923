// Language modelling: the next token of a text for a decoder.

#include <numbers>
#include <optional>

#include "attune/data/character_tokenizer.h"
#include "attune/data/window_sampler.h"
#include "attune/generate/model_files.h"
#include "attune/train/batch_loss.h"
#include "attune/train/task_parts.h"

namespace attune {
namespace {

class LanguageModelTask final : public TaskOf<DecoderLm, Window> {
 public:
  explicit LanguageModelTask(const TaskInput& input)
      : TaskOf(input.config),
        tokenizer_(input.resumes ? load_tokenizers(input.folder).source : make_tokenizer(config_)),
        text_(load_run_text(config_.data, *tokenizer_)) {
    const int64_t context = config_.model.context_length;
    sampler_.emplace(text_.train, WindowSamplerOptions{.context_length = context,
                                                       .max_tokens = config_.train.batch_tokens,
                                                       .seed = config_.train.seed});
    if (text_.valid.documents() > 0 && sliding_windows(text_.valid, context, context).empty())
      fail<DataError>("the validation text has {} tokens in {} documents: none has a token before it",
                      text_.valid.tokens(), text_.valid.documents());
    corpus_ = {.size = {.examples = text_.train.documents(), .tokens = text_.train.tokens()},
               .validation_examples = text_.valid.documents()};
    complete_vocab("vocab", config_.model.vocab, *tokenizer_);
    model_ = build_decoder_lm(config_.model, config_.train.seed);
  }

  void begin_epoch(int64_t epoch) override { batches_ = sampler_->epoch(epoch); }
  TrainingBatch batch(int64_t index, uint64_t /*forward*/, const BatchPart& part) const override {
    const auto size = [](const Window& w) {
      return ExampleSize{.labels = w.length, .tokens = w.length, .work = w.length};
    };
    return make_part(batch_indices(index), part, size, [&](std::span<const Window> windows) {
      return training_batch(*model_, pack(text_.train, windows));
    });
  }
  ValidationReport validate() override {
    ValidationReport report{.loss = evaluate(*model_, text_.valid, config_.train.valid_stride, evaluate_options()),
                            .examples = text_.valid.documents()};
    const double bits = report.loss.nll / std::numbers::ln2;  // of a token
    if (dynamic_cast<const CharacterTokenizer*>(tokenizer_.get()) != nullptr) report.bits_per_character = bits;
    if (dynamic_cast<const ByteTokenizer*>(tokenizer_.get()) != nullptr) report.bits_per_byte = bits;
    return report;
  }
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizer_, config_.sampling, config_.data.text_unit);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizer_, *tokenizer_);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  RunText text_;
  std::optional<WindowSampler> sampler_;
};

}  // namespace

std::unique_ptr<TrainingTask> make_language_model_task(const TaskInput& input) {
  return std::make_unique<LanguageModelTask>(input);
}

}  // namespace attune

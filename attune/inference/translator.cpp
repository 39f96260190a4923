#include "attune/inference/translator.h"

#include <algorithm>
#include <exception>

#include "attune/base/fail.h"
#include "attune/inference/translation_run.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

constexpr int64_t kReadAhead = 2048;  // sentences of a stream that are read and not yet written, before more are read

std::shared_ptr<const Transformer> with_panels(std::unique_ptr<Transformer> model) {
  ensure_panels(*model);
  return model;
}

}  // namespace

Translator::Translator(std::shared_ptr<const Transformer> model, std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation, Prepared)
    : model_(std::move(model)),
      source_tokenizer_(std::move(source_tokenizer)),
      target_tokenizer_(std::move(target_tokenizer)),
      generation_(generation) {
  generation_.validate();
  check_vocabularies(*model_, *source_tokenizer_, *target_tokenizer_);
}

Translator::Translator(const std::shared_ptr<Transformer>& model, std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation)
    : Translator(inference_copy(*model), std::move(source_tokenizer), std::move(target_tokenizer), generation,
                 Prepared{}) {}

Translator::Translator(ModelFiles files)
    : Translator(with_panels(std::move(files.model)), std::move(files.source_tokenizer),
                 std::move(files.target_tokenizer), files.generation, Prepared{}) {}

int64_t Translator::longest_source(const TranslateOptions& options) const {
  return std::min(options.max_source_tokens, model_->config().longest_sequence() - 1);  // and eos
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences,
                                               const TranslateOptions& options) const {
  if (!options.constraints.empty() && options.constraints.size() != sentences.size())
    fail<ConfigError>("constraints: {} for {} sentences", options.constraints.size(), sentences.size());
  TranslationRun run(*this, options);
  run.add(sentences, options.constraints);
  for (int64_t before = run.done(); run.busy(); before = run.done()) {
    run.step();
    if (options.progress && run.done() > before) options.progress(run.done(), static_cast<int64_t>(sentences.size()));
  }
  return run.take();
}

void Translator::translate(const TranslationStream& stream, const TranslateOptions& options) const {
  TranslationRun run(*this, options);
  std::exception_ptr error;  // of reading: what was read before it is translated all the same
  int64_t read = 0;
  for (bool more = true; more || run.busy();) {
    if (more && !run.waiting() && run.outstanding() < kReadAhead) {
      try {
        const std::vector<StreamedSentence> piece = stream.read(!run.busy());
        more = !piece.empty() || run.busy();
        std::vector<std::string> sentences;
        std::vector<TranslationConstraints> constraints;
        for (const StreamedSentence& s : piece) {
          sentences.push_back(s.text);
          constraints.push_back(s.constraints);
        }
        run.add(sentences, constraints);
        read += static_cast<int64_t>(piece.size());
      } catch (const Error&) {
        error = std::current_exception();
        more = false;
      }
    }
    const int64_t before = run.done();
    run.step();
    if (options.progress && run.done() > before) options.progress(run.done(), read);
    if (std::vector<Translation> done = run.take(); !done.empty()) stream.write(std::move(done));
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace attune

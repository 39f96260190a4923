#include "attune/inference/translator.h"

#include <algorithm>
#include <exception>

#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/call_progress.h"
#include "attune/inference/decoding/ensemble_decoding_model.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/place_model.h"
#include "attune/inference/translation_call.h"
#include "attune/models/inference_copy.h"
#include "attune/nn/make_panels.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

constexpr int64_t kReadAhead = 2048;  // sentences of a stream that are read and not yet written, before more are read

using Models = std::vector<std::shared_ptr<const Transformer>>;

// A model with the options of its scheduler, which has the device that it is on.
struct Placed {
  Models models;
  SchedulerOptions options;
};

Placed placed(std::unique_ptr<Transformer> model, SchedulerOptions options,
              std::span<const std::string> adapters = {}) {
  options.device = place_model(*model, options.device, options.precision, adapters);
  return {.models = {std::move(model)}, .options = options};
}

std::shared_ptr<const DecodingModel> decoding_model(const Models& models) {
  std::vector<std::shared_ptr<const DecodingModel>> all;
  for (const auto& model : models) all.push_back(std::make_shared<TranslationDecodingModel>(model));
  return all.size() == 1 ? all.front() : std::make_shared<EnsembleDecodingModel>(std::move(all));
}

// Throws ConfigError, which names the folder, unless both number the same pieces in the same way.
void check_same(const Tokenizer& first, const Tokenizer& other, const char* side, const std::string& folder) {
  if (first.vocab_size() != other.vocab_size())
    fail<ConfigError>("{}: the {} vocabulary has {} tokens, that of the first model {}", folder, side,
                      other.vocab_size(), first.vocab_size());
  for (int64_t i = 0; i < first.vocab_size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (first.piece(id) != other.piece(id))
      fail<ConfigError>("{}: token {} of the {} vocabulary is \"{}\", of the first model's \"{}\"", folder, id, side,
                        other.piece(id), first.piece(id));
  }
}

}  // namespace

struct Translator::Impl {
  std::shared_ptr<const Transformer> model;
  std::shared_ptr<const Tokenizer> source_tokenizer, target_tokenizer;
  GenerationConfig generation;
  std::vector<std::string> adapters = {};
  Scheduler scheduler;

  Impl(const Placed& placed, std::shared_ptr<const Tokenizer> source, std::shared_ptr<const Tokenizer> target,
       const GenerationConfig& g)
      : model(placed.models.front()),
        source_tokenizer(std::move(source)),
        target_tokenizer(std::move(target)),
        generation(g),
        scheduler(decoding_model(placed.models), placed.options) {
    generation.validate();
    check_vocabularies(model->config(), *source_tokenizer, *target_tokenizer,
                       vocabulary_size(generation.special_tokens));
  }
};

Translator::Translator(const std::shared_ptr<Transformer>& model, std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation,
                       const SchedulerOptions& options)
    : impl_(std::make_shared<Impl>(
          placed(inference_copy(*model, panel_format(options.precision), options.device), options),
          std::move(source_tokenizer), std::move(target_tokenizer), generation)) {}

Translator::Translator(ModelFolder files, const SchedulerOptions& options)
    : impl_(std::make_shared<Impl>(placed(std::move(files.model), options, files.adapters),
                                   std::move(files.source_tokenizer), std::move(files.target_tokenizer),
                                   files.generation)) {
  impl_->adapters = std::move(files.adapters);
}

Translator Translator::load(const std::filesystem::path& folder, const SchedulerOptions& options,
                            const AdapterFolders& adapters) {
  const Device device = options.device.value_or(Cpu{});
  return Translator(OpenedFolder(folder).load_model(weights_for(options.precision, device), adapters, device), options);
}

Translator Translator::load_ensemble(const std::vector<std::filesystem::path>& folders,
                                     const SchedulerOptions& options) {
  if (folders.empty()) fail<ConfigError>("ensemble: expected at least one folder, found none");
  const Device device = options.device.value_or(Cpu{});
  Placed all;
  ModelFolder first;
  for (const auto& folder : folders) {
    ModelFolder files = OpenedFolder(folder).load_model(weights_for(options.precision, device), {}, device);
    Placed own = placed(std::move(files.model), options);
    all.options = own.options;
    all.models.push_back(std::move(own.models.front()));
    if (all.models.size() == 1) {
      first = std::move(files);
      continue;
    }
    check_same(*first.source_tokenizer, *files.source_tokenizer, "source", folder.string());
    check_same(*first.target_tokenizer, *files.target_tokenizer, "target", folder.string());
  }
  return Translator(std::make_shared<Impl>(all, std::move(first.source_tokenizer), std::move(first.target_tokenizer),
                                           first.generation));
}

const Transformer& Translator::model() const {
  return *impl_->model;
}
const Tokenizer& Translator::source_tokenizer() const {
  return *impl_->source_tokenizer;
}
const Tokenizer& Translator::target_tokenizer() const {
  return *impl_->target_tokenizer;
}
const GenerationConfig& Translator::generation() const {
  return impl_->generation;
}
const std::vector<std::string>& Translator::adapters() const {
  return impl_->adapters;
}
Scheduler& Translator::scheduler() const {
  return impl_->scheduler;
}

int64_t Translator::longest_source(const TranslateOptions& options) const {
  return std::min(options.max_source_tokens, impl_->scheduler.model().longest_sequence() - 1);  // and eos
}

Translation Translator::translate(std::string_view sentence, const TranslateOptions& options) const {
  const std::string text(sentence);
  return std::move(translate(std::span(&text, 1), options).front());
}

std::vector<Translation> Translator::translate(std::initializer_list<std::string> sentences,
                                               const TranslateOptions& options) const {
  return translate(std::span(sentences.begin(), sentences.size()), options);
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences,
                                               const TranslateOptions& options) const {
  if (!options.constraints.empty() && options.constraints.size() != sentences.size())
    fail<ConfigError>("constraints: {} for {} sentences", options.constraints.size(), sentences.size());
  if (!options.places.empty() && options.places.size() != sentences.size())
    fail<ConfigError>("places: {} for {} sentences", options.places.size(), sentences.size());
  TranslationCall call(*this, impl_->scheduler, options);
  for (size_t i = 0; i < sentences.size(); ++i)
    call.add(sentences[i], options.constraints.empty() ? TranslationConstraints{} : options.constraints[i],
             options.places.empty() ? "" : options.places[i]);
  CallProgress progress(options.progress);
  const auto total = static_cast<int64_t>(sentences.size());
  while (call.busy()) {
    call.work();
    call.refuse_too_large();
    call.report();
    progress.show(call.done(), total);
  }
  std::vector<Translation> translations = call.take();
  progress.show(call.done(), total);  // where no sentence has tokens
  if (call.failure() != nullptr) call.throw_failure();
  return translations;
}

void Translator::translate(const TranslationStream& stream, const TranslateOptions& options) const {
  TranslationCall call(*this, impl_->scheduler, options);
  std::exception_ptr error;  // of reading: what was read before it is translated all the same
  CallProgress progress(options.progress);
  int64_t read = 0;
  const auto add = [&](const StreamedSentence& sentence) {
    ++read;
    try {
      call.add(sentence.text, sentence.constraints, sentence.place);
    } catch (const DataError& refused) {
      if (!stream.skip) throw;
      stream.skip(refused.what());
      call.add_skipped(refused.what());
    }
  };
  const auto hand_over = [&] {
    for (;;) {
      if (std::vector<Translation> done = call.take(); !done.empty()) stream.write(std::move(done));
      const std::string* failure = call.failure();
      if (failure == nullptr) return;
      if (!stream.skip) call.throw_failure();
      stream.skip(*failure);
      call.pass_over_failure();
    }
  };
  for (bool more = true; more || call.busy();) {
    if (more && !call.waiting() && call.outstanding() < kReadAhead) {
      try {
        const std::vector<StreamedSentence> piece = stream.read(!call.busy());
        more = !piece.empty() || call.busy();
        for (const StreamedSentence& sentence : piece) add(sentence);
      } catch (const Error&) {
        error = std::current_exception();
        more = false;
      }
    }
    call.work();
    progress.show(call.done(), read);
    hand_over();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace attune

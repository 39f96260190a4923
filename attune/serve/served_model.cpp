#include "attune/serve/served_model.h"

#include "attune/base/fail.h"
#include "attune/base/processors.h"
#include "attune/hub/adapter_folder.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/languages.h"
#include "attune/inference/translation_requests.h"
#include "attune/io/text_style_file.h"
#include "attune/serve/clock.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {
namespace {

// "de" or "de=deu_Latn".
ServedLanguage language_of(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

ServedModel::ServedModel(std::string name, const ModelConfig& config, const RequestLimits& limits)
    : name_(std::move(name)),
      config_(config),
      created_(seconds_since_1970()),
      admission_(std::make_shared<Admission>(limits.requests)) {
  const Device device = config_.place(name_);
  const ProductPrecision precision = resolved(config_.precision, device);
  const SchedulerOptions scheduling{.cache_bytes = config_.cache_bytes, .precision = precision, .device = device};
  const int64_t threads = config_.threads > 0 ? config_.threads : default_thread_count();
  const int64_t shared = batch_limits({.batch_sentences = config_.batch}).lanes;  // of translations; 0: any number
  const int64_t lanes = shared > 0 ? shared : device.is_host() ? threads : 1;
  const auto decode = [&](Scheduler& scheduler, int64_t places) {
    decoder_ = std::make_shared<DecodingWorker>(scheduler,
                                                DecodingWorker::Options{.places = places, .threads = config_.threads});
  };
  const auto encode = [&](EncoderWorker::Encode function) {
    encoder_ = std::make_unique<EncoderWorker>(
        std::move(function), EncoderWorker::Options{.batch_texts = config_.batch, .threads = config_.threads});
  };
  const OpenedFolder folder(config_.folder);
  const LoadedWeights weights = weights_for(precision, device);
  const Architecture architecture = folder.config().model.architecture;
  if (!config_.adapters.empty() && architecture != Architecture::encoder_decoder &&
      architecture != Architecture::decoder_lm)
    fail<ConfigError>("models.{}.adapters: are for translation models and language models, the folder has an \"{}\"",
                      name_, enum_name(architecture));
  switch (architecture) {
    case Architecture::encoder_decoder:
      kind_ = ModelKind::translation;
      translator_ = Translator(folder.load_model(weights, config_.adapters, device), scheduling);
      text_style_ = std::make_shared<TextStyleCheck>(read_source_text(config_.folder), false);  // no log has texts
      check_beam(limits);
      set_languages();
      decode(translator_->scheduler(), config_.batch * lanes);
      break;
    case Architecture::decoder_lm:
      kind_ = ModelKind::language_model;
      generator_ = TextGenerator(folder.load_language_model(weights, config_.adapters, device), scheduling);
      chat_template_ = open_chat_template(config_.folder);
      decode(generator_->scheduler(), config_.batch);
      break;
    case Architecture::encoder_classifier:
      kind_ = ModelKind::classifier;
      classifier_ = Classifier(folder.load_classifier(weights, device), precision, device);
      encode([this](std::span<const Encoding> texts) { return classifier_->logits(texts); });
      break;
    case Architecture::encoder:
    case Architecture::encoder_masked_lm:
      kind_ = ModelKind::embedder;
      embedder_ = Embedder::load(folder, precision, device);
      encode([this](std::span<const Encoding> texts) {
        return embedder_->embed_encoded(texts, {.normalize = false});  // the routes do it, as they are asked to
      });
      break;
  }
}

ServedModel::ServedModel(const ServedModel& base, std::string adapter)
    : name_(std::move(adapter)),
      adapter_(name_),
      base_(base.name_),
      config_(base.config_),
      created_(base.created_),
      kind_(base.kind_),
      translator_(base.translator_),
      generator_(base.generator_),
      chat_template_(base.chat_template_),
      source_languages_(base.source_languages_),
      target_languages_(base.target_languages_),
      text_style_(base.text_style_),
      admission_(base.admission_),
      decoder_(base.decoder_) {
  if (!generator_) return;
  if (auto own = ChatTemplate::load(config_.adapters.at(adapter_), config_.folder)) chat_template_ = std::move(own);
}

ServedModel::~ServedModel() = default;

void ServedModel::set_languages() {
  for (const std::string& text : config_.source_languages) source_languages_.push_back(language_of(text));
  for (const std::string& text : config_.target_languages) target_languages_.push_back(language_of(text));
  const auto [source, target] = languages_of_name(name_);
  if (source_languages_.empty() && target_languages_.empty() && !source.empty()) {
    source_languages_ = {{source}};
    target_languages_ = {{target}};
  }
  if (source_languages_.empty() != target_languages_.empty())
    fail<ConfigError>("models.{}: source_languages and target_languages: one of them is missing", name_);
  for (const ServedLanguage& l : source_languages_)
    if (!l.token.empty()) language_token(translator_->source_tokenizer(), "source_languages", l.token);
  for (const ServedLanguage& l : target_languages_)
    if (!l.token.empty()) language_token(translator_->target_tokenizer(), "target_languages", l.token);
}

// A request without beam_size takes the model's. If that is above the limit, each such request would be refused.
void ServedModel::check_beam(const RequestLimits& limits) const {
  if (const int64_t own = translator_->generation().beam_size; own > limits.beam_size)
    fail<ConfigError>(
        "models.{}: its generation_config.json has beam_size = {}, limits.beam_size allows up to {}: "
        "raise the limit or lower the model's",
        name_, own, limits.beam_size);
}

void ServedModel::stop() {
  if (decoder_) decoder_->stop();
  if (encoder_) encoder_->stop();
}

WorkerLoad ServedModel::load() const {
  return decoder_ ? decoder_->load() : encoder_->load();
}

SchedulerState ServedModel::scheduler_state() const {
  if (translator_) return translator_->scheduler().state();
  if (generator_) return generator_->scheduler().state();
  return {};
}

}  // namespace attune::serve

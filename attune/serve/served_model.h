#pragma once
// A model folder at work.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/serve/admission.h"
#include "attune/serve/decoding_worker.h"
#include "attune/serve/encoder_worker.h"
#include "attune/serve/serve_config.h"
#include "attune/text/chat_template.h"
#include "attune/text/text_style.h"

namespace attune::serve {

enum class ModelKind { translation, language_model, classifier, embedder };

/// A language as clients name it, and as the vocabulary of a model of many languages does ("" elsewhere).
struct ServedLanguage {
  std::string code = {}, token = {};
};

/// A model with the worker that runs its requests. What a call needs of it is const and thread-safe.
class ServedModel {
 public:
  /// Loads the model. Throws FileError, DeviceError and ConfigError; ConfigError also for a model whose own beam
  /// is larger than `limits` allow.
  ServedModel(std::string name, const ModelConfig& config, const RequestLimits& limits);
  /// One of the model's adapters as a model of its own: with the weights, the worker and the limits of `base`, and its
  /// chat template unless the adapter's folder has one. Throws FileError and ConfigError.
  ServedModel(const ServedModel& base, std::string adapter);
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;
  ~ServedModel();

  const std::string& name() const { return name_; }
  /// The adapter that its requests use, which has the model's name; "": none.
  const std::string& adapter() const { return adapter_; }
  const std::string& base() const { return base_; }  // the name of the model that the adapter is for; "": none
  const ModelConfig& config() const { return config_; }
  ModelKind kind() const { return kind_; }
  int64_t created() const { return created_; }  // seconds since 1970, when it was loaded

  // Null for models of other kinds.
  const Translator* translator() const { return translator_ ? &*translator_ : nullptr; }
  const TextGenerator* generator() const { return generator_ ? &*generator_ : nullptr; }
  const Classifier* classifier() const { return classifier_ ? &*classifier_ : nullptr; }
  const Embedder* embedder() const { return embedder_ ? &*embedder_ : nullptr; }
  const ChatTemplate* chat_template() const { return chat_template_ ? &*chat_template_ : nullptr; }

  const std::vector<ServedLanguage>& source_languages() const { return source_languages_; }
  const std::vector<ServedLanguage>& target_languages() const { return target_languages_; }

  DecodingWorker& decoder() const { return *decoder_; }  // of models that decode
  EncoderWorker& encoder() const { return *encoder_; }   // of the others
  Admission& admission() const { return *admission_; }
  TextStyleCheck& text_style() const { return *text_style_; }  // of texts to translate
  WorkerLoad load() const;
  /// Ends its requests with what they have; none may follow.
  void stop();
  SchedulerState scheduler_state() const;

 private:
  void set_languages();
  void check_beam(const RequestLimits& limits) const;

  const std::string name_, adapter_, base_;
  const ModelConfig config_;
  const int64_t created_;
  ModelKind kind_ = ModelKind::translation;
  std::optional<Translator> translator_;
  std::optional<TextGenerator> generator_;
  std::optional<Classifier> classifier_;
  std::optional<Embedder> embedder_;
  std::optional<ChatTemplate> chat_template_;
  std::vector<ServedLanguage> source_languages_, target_languages_;
  std::shared_ptr<TextStyleCheck> text_style_;
  std::shared_ptr<Admission> admission_;
  std::shared_ptr<DecodingWorker> decoder_;  // last: they use the rest
  std::unique_ptr<EncoderWorker> encoder_;
};

}  // namespace attune::serve

#pragma once
// The options of calls by name, as the C interface and the Python bindings read them from an object of options. Their
// fields are listed as those of configurations are (base/fields.h).

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "attune/base/json.h"
#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/ops/linear/precision_choice.h"

namespace attune {

/// What every call that decodes takes beside the fields of its model.
struct DecodingFields {
  double timeout_seconds = 0;  // 0: no limit
  int64_t threads = 0;         // of the call; 0: as many as the caller has

  /// The time at which the call ends; none without a limit. Throws ConfigError that begins with
  /// "options.timeout_seconds".
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
};

template <class FieldVisitor>
void visit_fields(DecodingFields& f, FieldVisitor& v) {
  v("timeout_seconds", f.timeout_seconds);
  v("threads", f.threads);
}

/// How a folder is loaded.
struct LoadFields {
  SchedulerOptions scheduling = {};
  std::string device = {};                               // becomes scheduling.device where it is given
  PrecisionChoice precision = PrecisionChoice::float32;  // becomes scheduling.precision
};

template <class FieldVisitor>
void visit_fields(LoadFields& f, FieldVisitor& v) {
  v("device", f.device);
  v("precision", f.precision);
  v("cache_bytes", f.scheduling.cache_bytes);
}

/// Reads the options. Throws ConfigError, and DeviceError if the device cannot be used.
LoadFields load_fields(const Json& options);

/// Takes "adapters" out of a table: names, which are no fields, and folders. None where it is not there. Throws
/// ConfigError that begins with `where`.
AdapterFolders take_adapters(Json& table, const std::string& where);

struct TranslateFields {
  GenerationConfig generation = {};
  TranslateOptions options = {};
  DecodingFields decoding = {};
};

template <class FieldVisitor>
void visit_fields(TranslateFields& f, FieldVisitor& v) {
  visit_fields(f.generation, v);
  v("adapter", f.options.adapter);
  v("n_best", f.options.n_best);
  v("alignments", f.options.alignments);
  v("required", f.options.required);
  v("banned", f.options.banned);
  v("source_language", f.options.source_language);
  v("target_language", f.options.target_language);
  v("max_source_tokens", f.options.max_source_tokens);
  v("batch_sentences", f.options.batch_sentences);
  v("batch_tokens", f.options.batch_tokens);
  visit_fields(f.decoding, v);
}

/// Reads the options over the translator's own. The generation and the deadline of `options` in the result are set.
/// Throws ConfigError.
TranslateFields translate_fields(const Translator& translator, const Json& options);

struct GenerateFields {
  SamplingConfig sampling = {};
  GenerateOptions options = {};
  DecodingFields decoding = {};
};

template <class FieldVisitor>
void visit_fields(GenerateFields& f, FieldVisitor& v) {
  visit_fields(f.sampling, v);
  v("adapter", f.options.adapter);
  v("stop", f.options.stop);
  v("keep_stop", f.options.keep_stop);
  v("samples", f.options.samples);
  v("batch_texts", f.options.batch_texts);
  v("prompts_have_special_tokens", f.options.prompts_have_special_tokens);
  v("draft_tokens", f.options.draft_tokens);
  visit_fields(f.decoding, v);
}

/// Reads the options over the generator's own. The sampling, the deadline and the draft (null: none) of `options` in
/// the result are set. Throws ConfigError, also where there are draft_tokens without a draft.
GenerateFields generate_fields(const TextGenerator& generator, const TextGenerator* draft, const Json& options);

struct ClassifyFields {
  ClassifyOptions options = {};
  int64_t max_tokens = 0;  // becomes options.max_tokens where it is given
  int64_t threads = 0;
};

template <class FieldVisitor>
void visit_fields(ClassifyFields& f, FieldVisitor& v) {
  v("max_tokens", f.max_tokens);
  v("top", f.options.top);
  v("batch_texts", f.options.batch_texts);
  v("batch_tokens", f.options.batch_tokens);
  v("threads", f.threads);
}

/// Reads the options. Throws ConfigError.
ClassifyFields classify_fields(const Json& options);

struct EmbedFields {
  EmbedOptions options = {};
  TextPooling pooling = TextPooling::mean;  // becomes options.pooling where it is given
  bool normalize = false;                   // likewise
  std::string prompt_name = {};             // likewise
  int64_t threads = 0;
};

template <class FieldVisitor>
void visit_fields(EmbedFields& f, FieldVisitor& v) {
  v("pooling", f.pooling);
  v("normalize", f.normalize);
  v("prompt_name", f.prompt_name);
  v("batch_texts", f.options.batch_texts);
  v("batch_tokens", f.options.batch_tokens);
  v("threads", f.threads);
}

/// Reads the options. Throws ConfigError.
EmbedFields embed_fields(const Json& options);

}  // namespace attune

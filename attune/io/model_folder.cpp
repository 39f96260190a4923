#include "attune/io/model_folder.h"
#include "attune/base/with_prefix.h"
#include "attune/io/config_file.h"
#include "attune/io/parameter_file.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"
#include "attune/io/panel_parameters.h"
#include "attune/models/build.h"
#include "attune/nn/make_panels.h"
#include "attune/text/limited_tokenizer.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

void check_vocab(const std::string& where, const Tokenizer& tokenizer, const char* field, int64_t vocab,
                 VocabularySize size = VocabularySize::exact) {
  const int64_t tokens = tokenizer.vocab_size();
  if (size == VocabularySize::padded ? tokens > vocab : tokens != vocab)
    fail<ConfigError>("{}: has {} tokens, but the model has {} = {}", where, tokens, field, vocab);
}

void load_both_tokenizers(const fs::path& folder, const TransformerConfig& config, VocabularySize size,
                          ModelFolder& files) {
  const TokenizerFiles found = find_tokenizers(folder);
  TokenizerPair tokenizers = load_tokenizers(found);
  if (size == VocabularySize::padded)
    tokenizers = limited_tokenizers(tokenizers, config.source_vocab, config.target_vocab);
  check_vocab(found.source.string(), *tokenizers.source, "source_vocab", config.source_vocab, size);
  check_vocab(found.target.string(), *tokenizers.target, "target_vocab", config.target_vocab, size);
  files.source_tokenizer = std::move(tokenizers.source);
  files.target_tokenizer = std::move(tokenizers.target);
}

std::shared_ptr<const Tokenizer> load_only_tokenizer(const fs::path& folder, const TransformerConfig& config,
                                                     bool tokenizer_frames_texts) {
  const fs::path file = find_tokenizer(folder);
  if (file.empty()) fail<FileError>("{}: needs {}", folder.string(), kTokenizerFileNames);
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(file);
  if (tokenizer_frames_texts) return limited_tokenizer(std::move(tokenizer), config.vocab);
  check_vocab(file.string(), *tokenizer, "vocab", config.vocab);
  return tokenizer;
}

// What generation_config.json holds for a language model.
struct LanguageModelSettings {
  TextUnit text_unit = TextUnit::stream;
  SamplingConfig sampling;
  bool tokenizer_frames_texts = false;
  void validate() const { sampling.validate(); }
};

template <class FieldVisitor>
void visit_fields(LanguageModelSettings& c, FieldVisitor& v) {
  v("text_unit", c.text_unit);
  visit_fields(c.sampling, v);
  v("tokenizer_frames_texts", c.tokenizer_frames_texts);
}

// What it holds for a classifier and an encoder.
struct EncoderSettings {
  int64_t max_tokens = ClassifierFolder{}.max_tokens;
  bool tokenizer_frames_texts = false;
  void validate() const {
    constexpr int64_t kLeast = 3;  // bos, a token, eos
    if (max_tokens < kLeast || max_tokens > kMostTextTokens)
      fail<ConfigError>("max_tokens = {}: needs a number from {} to {}", max_tokens, kLeast, kMostTextTokens);
  }
};

template <class FieldVisitor>
void visit_fields(EncoderSettings& c, FieldVisitor& v) {
  v("max_tokens", c.max_tokens);
  v("tokenizer_frames_texts", c.tokenizer_frames_texts);
}

template <class Config>
Config read_generation_config(const fs::path& folder) {
  const fs::path path = folder / kGenerationConfigFile;
  Config config;
  if (!is_there_or_link(path)) return config;  // a link that leads nowhere is reported when it is read
  read_fields(read_json_file(path), config, path.string());
  with_prefix(path.string() + ": ", [&] { config.validate(); });
  return config;
}

template <class Model>
void write_encoder_settings(const fs::path& folder, const EncoderFolderOf<Model>& files) {
  write_json_file(folder / kGenerationConfigFile,
                  write_fields(EncoderSettings{.max_tokens = files.max_tokens,
                                               .tokenizer_frames_texts = files.tokenizer_frames_texts}));
}

const char* use_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::encoder_classifier:
      return "attune classify runs it";
    case Architecture::encoder_masked_lm:
    case Architecture::encoder:
      return "attune embed runs it";
    case Architecture::decoder_lm:
      return "attune generate runs it";
    default:
      return "attune translate runs it";
  }
}

void check_config(const fs::path& folder, const ConfigFile& file, Architecture needed, const char* task) {
  check_architecture(folder, file.model.architecture, needed, task);
  check_parameter_file(folder, file.model, file.weight_format);
}

// `build` makes a model of the configuration. Its parameters are only read, so that they may be the file's own pages.
template <class Build>
auto build_for_use(Build build, const ConfigFile& config, const fs::path& folder, LoadedWeights weights) {
  auto model = build_without_values(config.model, build);
  const auto made = panel_format(weights).value_or(WeightFormat::float32);
  if (config.weight_format) {
    if (made != WeightFormat::float32 && *config.weight_format != made)
      fail<ConfigError>("{}: its weights are {} panels; {} products need {} panels or matrices", folder.string(),
                        enum_name(*config.weight_format), enum_name(made), enum_name(made));
    map_panel_parameters(folder / kParameterFile, *model, *config.weight_format);
    if (are_panels(weights)) ensure_panels(*model, made);  // of what the file has as matrices
  } else {
    const SafetensorsReader reader = open_parameters(folder / kParameterFile);
    map_parameters(reader, *model, named_parameters(*model), {});
    if (are_panels(weights))
      make_panels(*model, made, {.done = [&](const Tensor& weight) { reader.release_pages(weight); }});
    if (weights == LoadedWeights::bfloat16_tensors) round_matrices(*model);
  }
  return model;
}

template <class Folder, class Build>
Folder load_encoder(Build build, const ConfigFile& config, const fs::path& folder, LoadedWeights weights) {
  Folder files;
  const auto settings = read_generation_config<EncoderSettings>(folder);
  files.tokenizer = load_only_tokenizer(folder, config.model, settings.tokenizer_frames_texts);
  files.tokenizer_frames_texts = settings.tokenizer_frames_texts;
  files.max_tokens = std::min(settings.max_tokens, config.model.longest_sequence());
  files.model = build_for_use(build, config, folder, weights);
  return files;
}

// Everything but generation_config.json, for a model with one vocabulary.
template <class Model>
void save_model_and_tokenizer(const fs::path& folder, Model& model, const Tokenizer& tokenizer,
                              bool tokenizer_frames_texts) {
  check_vocabulary(model.config(), tokenizer, vocabulary_size(tokenizer_frames_texts));
  make_directories(folder);
  write_model_config(folder, model.config());
  save_parameters(folder / kParameterFile, model);
  save_tokenizers(folder, tokenizer, tokenizer);
}

void remove_generation_config(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / kGenerationConfigFile, error);
  if (error) fail<FileError>("{}: cannot remove: {}", (folder / kGenerationConfigFile).string(), error.message());
}

}  // namespace

void check_architecture(const fs::path& folder, Architecture found, Architecture needed, const char* task) {
  if (found != needed)
    fail<ConfigError>("{}: architecture is \"{}\", {} needs \"{}\" ({})", folder.string(), enum_name(found), task,
                      enum_name(needed), use_of(found));
}

void check_vocabularies(const TransformerConfig& config, const Tokenizer& source_tokenizer,
                        const Tokenizer& target_tokenizer, VocabularySize size) {
  check_vocab("source tokenizer", source_tokenizer, "source_vocab", config.source_vocab, size);
  check_vocab("target tokenizer", target_tokenizer, "target_vocab", config.target_vocab, size);
}

void check_vocabulary(const TransformerConfig& config, const Tokenizer& tokenizer, VocabularySize size) {
  check_vocab("tokenizer", tokenizer, "vocab", config.vocab, size);
}

void write_generation_config(const fs::path& folder, const GenerationConfig& generation) {
  write_json_file(folder / kGenerationConfigFile, write_fields(generation));
}

void write_generation_config(const fs::path& folder, const LanguageModelFolder& files) {
  write_json_file(folder / kGenerationConfigFile,
                  write_fields(LanguageModelSettings{.text_unit = files.text_unit,
                                                     .sampling = files.sampling,
                                                     .tokenizer_frames_texts = files.tokenizer_frames_texts}));
}

void write_generation_config(const fs::path& folder, const ClassifierFolder& files) {
  write_encoder_settings(folder, files);
}

void write_generation_config(const fs::path& folder, const EncoderFolder& files) {
  write_encoder_settings(folder, files);
}

void write_generation_config(const fs::path& folder, const MaskedLmFolder& files) {
  write_encoder_settings(folder, files);
}

GenerationConfig read_translation_settings(const fs::path& folder) {
  return read_generation_config<GenerationConfig>(folder);
}

LanguageModelFolder read_language_model_settings(const fs::path& folder) {
  const auto settings = read_generation_config<LanguageModelSettings>(folder);
  LanguageModelFolder files;
  files.sampling = settings.sampling;
  files.text_unit = settings.text_unit;
  files.tokenizer_frames_texts = settings.tokenizer_frames_texts;
  return files;
}

ClassifierFolder read_encoder_settings(const fs::path& folder) {
  const auto settings = read_generation_config<EncoderSettings>(folder);
  ClassifierFolder files;
  files.max_tokens = settings.max_tokens;
  files.tokenizer_frames_texts = settings.tokenizer_frames_texts;
  return files;
}

void save_model_folder(const fs::path& folder, Transformer& model, const Tokenizer& source_tokenizer,
                       const Tokenizer& target_tokenizer, const GenerationConfig& generation) {
  generation.validate();
  check_vocabularies(model.config(), source_tokenizer, target_tokenizer, vocabulary_size(generation.special_tokens));
  make_directories(folder);
  write_model_config(folder, model.config());
  save_parameters(folder / kParameterFile, model);
  write_json_file(folder / kGenerationConfigFile, write_fields(generation));
  save_tokenizers(folder, source_tokenizer, target_tokenizer);
}

void save_model_folder(const fs::path& folder, DecoderLm& model, const Tokenizer& tokenizer,
                       const SamplingConfig& sampling, TextUnit text_unit, bool tokenizer_frames_texts) {
  sampling.validate();
  save_model_and_tokenizer(folder, model, tokenizer, tokenizer_frames_texts);
  write_json_file(folder / kGenerationConfigFile,
                  write_fields(LanguageModelSettings{
                      .text_unit = text_unit, .sampling = sampling, .tokenizer_frames_texts = tokenizer_frames_texts}));
}

void save_model_folder(const fs::path& folder, EncoderClassifier& model, const Tokenizer& tokenizer, int64_t max_tokens,
                       bool tokenizer_frames_texts) {
  const EncoderSettings settings{.max_tokens = max_tokens, .tokenizer_frames_texts = tokenizer_frames_texts};
  settings.validate();
  save_model_and_tokenizer(folder, model, tokenizer, tokenizer_frames_texts);
  write_json_file(folder / kGenerationConfigFile, write_fields(settings));
}

void save_model_folder(const fs::path& folder, EncoderMaskedLm& model, const Tokenizer& tokenizer,
                       bool tokenizer_frames_texts) {
  save_model_and_tokenizer(folder, model, tokenizer, tokenizer_frames_texts);
  if (!tokenizer_frames_texts) return remove_generation_config(folder);
  write_json_file(
      folder / kGenerationConfigFile,
      write_fields(EncoderSettings{.max_tokens = std::min(kMostTextTokens, model.config().longest_sequence()),
                                   .tokenizer_frames_texts = true}));
}

ModelFolder load_model_folder(const fs::path& folder, LoadedWeights weights) {
  return load_model_folder(folder, read_config_file(folder), weights);
}

ModelFolder load_model_folder(const fs::path& folder, const ConfigFile& config, LoadedWeights weights) {
  check_config(folder, config, Architecture::encoder_decoder, "translation");
  ModelFolder files;
  files.generation = read_generation_config<GenerationConfig>(folder);
  load_both_tokenizers(folder, config.model, vocabulary_size(files.generation.special_tokens), files);
  files.model = build_for_use(build_transformer, config, folder, weights);
  return files;
}

LanguageModelFolder load_language_model_folder(const fs::path& folder, LoadedWeights weights) {
  return load_language_model_folder(folder, read_config_file(folder), weights);
}

LanguageModelFolder load_language_model_folder(const fs::path& folder, const ConfigFile& config,
                                               LoadedWeights weights) {
  check_config(folder, config, Architecture::decoder_lm, "generation");
  LanguageModelFolder files;
  const auto settings = read_generation_config<LanguageModelSettings>(folder);
  files.tokenizer = load_only_tokenizer(folder, config.model, settings.tokenizer_frames_texts);
  files.tokenizer_frames_texts = settings.tokenizer_frames_texts;
  files.sampling = settings.sampling;
  files.text_unit = settings.text_unit;
  files.model = build_for_use(build_decoder_lm, config, folder, weights);
  return files;
}

ClassifierFolder load_classifier_folder(const fs::path& folder, LoadedWeights weights) {
  return load_classifier_folder(folder, read_config_file(folder), weights);
}

ClassifierFolder load_classifier_folder(const fs::path& folder, const ConfigFile& config, LoadedWeights weights) {
  check_config(folder, config, Architecture::encoder_classifier, "classification");
  return load_encoder<ClassifierFolder>(build_encoder_classifier, config, folder, weights);
}

EncoderFolder load_encoder_folder(const fs::path& folder, LoadedWeights weights) {
  return load_encoder_folder(folder, read_config_file(folder), weights);
}

EncoderFolder load_encoder_folder(const fs::path& folder, const ConfigFile& config, LoadedWeights weights) {
  check_config(folder, config, Architecture::encoder, "embedding");
  return load_encoder<EncoderFolder>(build_encoder_model, config, folder, weights);
}

MaskedLmFolder load_masked_lm_folder(const fs::path& folder, LoadedWeights weights) {
  return load_masked_lm_folder(folder, read_config_file(folder), weights);
}

MaskedLmFolder load_masked_lm_folder(const fs::path& folder, const ConfigFile& config, LoadedWeights weights) {
  check_config(folder, config, Architecture::encoder_masked_lm, "masked tokens");
  return load_encoder<MaskedLmFolder>(build_encoder_masked_lm, config, folder, weights);
}

}  // namespace attune

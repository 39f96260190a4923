#pragma once
// A model is a folder, as on the Hugging Face hub: config.json, model.safetensors, generation_config.json and the
// tokenizers' files, which their own classes write.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attune/base/execution.h"
#include "attune/io/config_file.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/generation_config.h"
#include "attune/models/sampling_config.h"
#include "attune/models/transformer.h"
#include "attune/text/text_unit.h"
#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

inline constexpr const char* kGenerationConfigFile = "generation_config.json";

// What a folder holds.

struct ModelFolder {
  std::unique_ptr<Transformer> model;
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;  // may be the same object
  GenerationConfig generation;
  std::vector<std::string> adapters = {};  // names of those to choose from, by number: see AdapterFolders
};

struct LanguageModelFolder {
  std::unique_ptr<DecoderLm> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  SamplingConfig sampling;
  TextUnit text_unit = TextUnit::stream;  // what the model was trained on: lines and paragraphs begin with bos
  /// Prompts have the special tokens that the tokenizer itself puts around texts, and no others.
  bool tokenizer_frames_texts = false;
  std::vector<std::string> adapters = {};  // names of those to choose from, by number: see AdapterFolders
};

inline constexpr int64_t kMostTextTokens = 1 << 16;  // the largest max_tokens

/// A model that reads one text at a time, without a decoder.
template <class Model>
struct EncoderFolderOf {
  std::unique_ptr<Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  int64_t max_tokens = 4096;  // of a text, bos and eos included, as in training: longer ones are cut
  /// Texts have the special tokens that the tokenizer itself puts around them, in place of bos and eos.
  bool tokenizer_frames_texts = false;
};

struct ClassifierFolder : EncoderFolderOf<EncoderClassifier> {};
struct EncoderFolder : EncoderFolderOf<EncoderModel> {};
struct MaskedLmFolder : EncoderFolderOf<EncoderMaskedLm> {};

/// How many tokens a model has: exactly as many as its tokenizer, or, `padded`, perhaps more, as models of the Hugging
/// Face hub have. Where a padded model has fewer, the loaders below give a limited_tokenizer().
enum class VocabularySize { exact, padded };
inline VocabularySize vocabulary_size(bool tokenizer_frames_texts) {
  return tokenizer_frames_texts ? VocabularySize::padded : VocabularySize::exact;
}

/// Throw ConfigError, naming both sizes, when a tokenizer's vocabulary does not fit the model's.
void check_vocabularies(const TransformerConfig& config, const Tokenizer& source_tokenizer,
                        const Tokenizer& target_tokenizer, VocabularySize size = VocabularySize::exact);
void check_vocabulary(const TransformerConfig& config, const Tokenizer& tokenizer,
                      VocabularySize size = VocabularySize::exact);

/// Throws ConfigError that names the folder, both architectures and the command for `found` unless `found` is `needed`,
/// which `task` ("translation") needs.
void check_architecture(const std::filesystem::path& folder, Architecture found, Architecture needed, const char* task);

/// Write generation_config.json: what the loaders below read of it. Throw FileError.
void write_generation_config(const std::filesystem::path& folder, const GenerationConfig& generation);
void write_generation_config(const std::filesystem::path& folder, const LanguageModelFolder& files);
void write_generation_config(const std::filesystem::path& folder, const ClassifierFolder& files);
void write_generation_config(const std::filesystem::path& folder, const EncoderFolder& files);
void write_generation_config(const std::filesystem::path& folder, const MaskedLmFolder& files);

/// Read generation_config.json alone; the folders returned have neither model nor tokenizer. Without the file its
/// defaults hold. Throw FileError and ConfigError naming the file.
GenerationConfig read_translation_settings(const std::filesystem::path& folder);
LanguageModelFolder read_language_model_settings(const std::filesystem::path& folder);
ClassifierFolder read_encoder_settings(const std::filesystem::path& folder);

/// Writes config.json, model.safetensors, generation_config.json and the tokenizers: tokenizer.model or vocabulary.json
/// where both are one object, else one for each side. Tokenizers that the folder had before are removed. Each file is
/// written whole or not at all. Throws FileError, and ConfigError when a vocabulary is not the model's; where the
/// tokenizer frames texts, or outputs may have special tokens, the model's may be larger.
void save_model_folder(const std::filesystem::path& folder, Transformer& model, const Tokenizer& source_tokenizer,
                       const Tokenizer& target_tokenizer, const GenerationConfig& generation);

/// The same; generation_config.json holds the fields of SamplingConfig, "text_unit" and "tokenizer_frames_texts".
void save_model_folder(const std::filesystem::path& folder, DecoderLm& model, const Tokenizer& tokenizer,
                       const SamplingConfig& sampling, TextUnit text_unit, bool tokenizer_frames_texts = false);

/// The same; generation_config.json holds "max_tokens" and "tokenizer_frames_texts".
void save_model_folder(const std::filesystem::path& folder, EncoderClassifier& model, const Tokenizer& tokenizer,
                       int64_t max_tokens, bool tokenizer_frames_texts = false);

/// The same; without generation_config.json unless the tokenizer frames texts.
void save_model_folder(const std::filesystem::path& folder, EncoderMaskedLm& model, const Tokenizer& tokenizer,
                       bool tokenizer_frames_texts = false);

/// What loading makes of parameters:
///   mapped            float32. Pages of the file where it has float32 (see map_parameters()), else copies
///   panels            for inference. Panels of what products read; the rest as `mapped`. Pages of the file that became
///                     panels leave memory until embeddings read rows of them
///   bfloat16_panels   as `panels`, all panels in bfloat16 (float32 is rounded), for ProductPrecision::bfloat16. A
///                     folder with panels of another type is refused
///   bfloat16_tensors  for ProductPrecision::bfloat16 on devices that read tensors, see round_matrices(): what products
///                     alone read, or products and lookups, in bfloat16 (float32 is rounded); tables that lookups
///                     alone read too where a hub folder has them in bfloat16; the rest as `mapped`. A folder with
///                     panels of another type is refused
///   int8_panels       as `panels`, all panels in int8, for a model that is trained by adapters alone
///   stored            as `mapped`, for conversion to panels
/// All but `mapped` keep bfloat16 matrices of a hub folder in bfloat16.
enum class LoadedWeights { mapped, panels, bfloat16_panels, bfloat16_tensors, int8_panels, stored };

inline bool are_panels(LoadedWeights weights) {
  return weights == LoadedWeights::panels || weights == LoadedWeights::bfloat16_panels ||
         weights == LoadedWeights::int8_panels;
}
/// The format of the panels that are made; a folder with panels of another format is refused. None: panels have the
/// format of the matrices, or of those in the folder.
inline std::optional<WeightFormat> panel_format(LoadedWeights weights) {
  if (weights == LoadedWeights::bfloat16_panels || weights == LoadedWeights::bfloat16_tensors)
    return WeightFormat::bfloat16;
  if (weights == LoadedWeights::int8_panels) return WeightFormat::int8;
  return std::nullopt;
}
/// The panels that products of this precision read.
inline LoadedWeights panels_for(ProductPrecision precision) {
  return precision == ProductPrecision::bfloat16 ? LoadedWeights::bfloat16_panels : LoadedWeights::panels;
}

/// Read what save_model_folder() wrote; without generation_config.json its defaults hold. The folder may be hostile: no
/// more memory is allocated than its files have bytes. Throw FileError or ConfigError naming the file, ConfigError when
/// the model is of another architecture, with the command that it is for.
ModelFolder load_model_folder(const std::filesystem::path& folder, LoadedWeights weights = LoadedWeights::mapped);
LanguageModelFolder load_language_model_folder(const std::filesystem::path& folder,
                                               LoadedWeights weights = LoadedWeights::mapped);
ClassifierFolder load_classifier_folder(const std::filesystem::path& folder,
                                        LoadedWeights weights = LoadedWeights::mapped);
EncoderFolder load_encoder_folder(const std::filesystem::path& folder, LoadedWeights weights = LoadedWeights::mapped);
MaskedLmFolder load_masked_lm_folder(const std::filesystem::path& folder,
                                     LoadedWeights weights = LoadedWeights::mapped);
/// The same with what config.json says.
ModelFolder load_model_folder(const std::filesystem::path& folder, const ConfigFile& config, LoadedWeights weights);
LanguageModelFolder load_language_model_folder(const std::filesystem::path& folder, const ConfigFile& config,
                                               LoadedWeights weights);
ClassifierFolder load_classifier_folder(const std::filesystem::path& folder, const ConfigFile& config,
                                        LoadedWeights weights);
EncoderFolder load_encoder_folder(const std::filesystem::path& folder, const ConfigFile& config, LoadedWeights weights);
MaskedLmFolder load_masked_lm_folder(const std::filesystem::path& folder, const ConfigFile& config,
                                     LoadedWeights weights);

}  // namespace attune

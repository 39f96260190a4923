#pragma once
// A folder with everything that a model needs to be used.

#include <filesystem>
#include <memory>

#include "attune/inference/config.h"
#include "attune/inference/sampling_config.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

// What a folder holds.

struct ModelFiles {
  std::unique_ptr<Transformer> model;
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;  // may be the same object
  GenerationConfig generation;
};

struct LanguageModelFiles {
  std::unique_ptr<DecoderLm> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  SamplingConfig sampling;
  TextUnit text_unit = TextUnit::stream;  // what the model was trained on: lines and paragraphs begin with bos
};

struct ClassifierFiles {
  std::unique_ptr<EncoderClassifier> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  int64_t max_tokens = 4096;  // of a text, bos and eos included, as in training: longer ones are cut
};

/// Throw ConfigError, naming both sizes, when a tokenizer's vocabulary does not have the size that the model expects.
void check_vocabularies(const Transformer& model, const Tokenizer& source_tokenizer, const Tokenizer& target_tokenizer);
void check_vocabulary(const TransformerConfig& config, const Tokenizer& tokenizer);

/// Writes config.json, model.safetensors, generation_config.json and the tokenizers: tokenizer.model or tokenizer.json
/// where both are one object, else source_tokenizer.* and target_tokenizer.*. Tokenizers that the folder had before are
/// removed. Each file is written whole or not at all. Throws FileError, and ConfigError when a vocabulary is not the
/// model's.
void save_model_folder(const std::filesystem::path& folder, Transformer& model, const Tokenizer& source_tokenizer,
                       const Tokenizer& target_tokenizer, const GenerationConfig& generation);

/// The same; generation_config.json holds the fields of SamplingConfig and "text_unit".
void save_model_folder(const std::filesystem::path& folder, DecoderLm& model, const Tokenizer& tokenizer,
                       const SamplingConfig& sampling, TextUnit text_unit);

/// The same; generation_config.json holds "max_tokens" alone.
void save_model_folder(const std::filesystem::path& folder, EncoderClassifier& model, const Tokenizer& tokenizer,
                       int64_t max_tokens);

/// The same without generation_config.json.
void save_model_folder(const std::filesystem::path& folder, EncoderMaskedLm& model, const Tokenizer& tokenizer);

/// What loading does with parameters. `mapped`: they are pages of the file, see map_parameters(). `packed`: the panels
/// of weights are made too, see make_panels(). Pages whose panels were made then leave memory until they are read again
/// (by embeddings, a row at a time).
enum class LoadedWeights { mapped, packed };

/// Read what save_model_folder() wrote; without generation_config.json its defaults apply. The folder may be hostile:
/// loading allocates no more than the size of its files. Throw FileError or ConfigError naming the file. When the model
/// is of another architecture, the ConfigError names the command for it.
ModelFiles load_model_folder(const std::filesystem::path& folder, LoadedWeights weights = LoadedWeights::mapped);
LanguageModelFiles load_language_model_folder(const std::filesystem::path& folder,
                                              LoadedWeights weights = LoadedWeights::mapped);
ClassifierFiles load_classifier_folder(const std::filesystem::path& folder,
                                       LoadedWeights weights = LoadedWeights::mapped);

}  // namespace attune

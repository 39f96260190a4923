#pragma once
// A folder with everything that translation needs.

#include <filesystem>
#include <memory>

#include "attune/data/tokenizer.h"
#include "attune/generate/config.h"
#include "attune/models/transformer.h"

namespace attune {

struct ModelFiles {
  std::unique_ptr<Transformer> model;  // in evaluation mode
  std::shared_ptr<const Tokenizer> source_tokenizer;
  std::shared_ptr<const Tokenizer> target_tokenizer;  // may be the same object
  GenerationConfig generation;
};

/// Throws ConfigError, naming both sizes, when a tokenizer's vocabulary is not the model's.
void check_vocabularies(const Transformer& model, const Tokenizer& source_tokenizer, const Tokenizer& target_tokenizer);

/// Writes config.json, model.safetensors, generation_config.json and the tokenizers: tokenizer.model or tokenizer.json
/// where both are one object, else source_tokenizer.* and target_tokenizer.*. Tokenizers that the folder had before are
/// removed. Each file is written whole or not at all. Throws FileError, and ConfigError when a vocabulary is not the
/// model's.
void save_model_folder(const std::filesystem::path& folder, Transformer& model, const Tokenizer& source_tokenizer,
                       const Tokenizer& target_tokenizer, const GenerationConfig& generation);

/// Reads what save_model_folder wrote; without generation_config.json its defaults hold. The folder may be hostile:
/// nothing larger than its files is allocated for. Throws FileError or ConfigError naming the file.
ModelFiles load_model_folder(const std::filesystem::path& folder);

}  // namespace attune

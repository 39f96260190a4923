#pragma once
// The two vocabularies of a run.

#include <filesystem>
#include <memory>

#include "attune/data/tokenizer.h"
#include "attune/train/config.h"

namespace attune {

struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;  // one object where one vocabulary serves both sides
};

/// Those of the files that `data` names, else new ones that are learnt from the training text; the same text and seed
/// give the same vocabulary. Throws ConfigError, DataError and FileError.
TokenizerPair make_tokenizers(const DataConfig& data, uint64_t seed);

/// As in a model folder: tokenizer.* for one object, else source_tokenizer.* and target_tokenizer.*. What the folder
/// had before is removed. Throws FileError.
void save_tokenizers(const std::filesystem::path& folder, const TokenizerPair& tokenizers);
TokenizerPair load_tokenizers(const std::filesystem::path& folder);

}  // namespace attune

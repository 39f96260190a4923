#pragma once
// The vocabularies of a run: one, or in translation one for each side.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "attune/data/tokenizer_files.h"
#include "attune/train/config.h"

namespace attune {

/// Those of the files that config.data names, else those of train.initialize_from, else new ones that are learnt from
/// the training text; the same text and seed give the same vocabulary. Throw ConfigError, DataError and FileError.
TokenizerPair make_tokenizers(const RunConfig& config);
/// Of an architecture with one vocabulary. It is learnt from data.train_files.
std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config);
/// The same, learnt from `texts`. `scratch` is a folder for a file that is removed again.
std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config, const std::vector<std::string>& texts,
                                                const std::filesystem::path& scratch);

}  // namespace attune

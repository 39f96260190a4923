#pragma once
// Opens model folders for use: Attune's own (io/model_folder.h) and those of the Hugging Face hub, as they are.

#include <filesystem>

#include "attune/io/config_file.h"
#include "attune/io/model_folder.h"

namespace [[gnu::visibility("default")]] attune {

/// The model's configuration; that of a folder of the hub is translated into ours. Checks the sizes of the files
/// against it. Throws FileError or ConfigError.
ConfigFile open_config(const std::filesystem::path& folder);

/// As load_model_folder() and its like, which read Attune's own folders, and also for folders of the hub: their
/// generation_config.json is honoured, and their tokenizers put special tokens around texts as they were made to. Throw
/// FileError or ConfigError naming the file, and the field that is not supported.
ModelFolder open_model_folder(const std::filesystem::path& folder, LoadedWeights weights = LoadedWeights::mapped);
LanguageModelFolder open_language_model_folder(const std::filesystem::path& folder,
                                               LoadedWeights weights = LoadedWeights::mapped);
ClassifierFolder open_classifier_folder(const std::filesystem::path& folder,
                                        LoadedWeights weights = LoadedWeights::mapped);
EncoderFolder open_encoder_folder(const std::filesystem::path& folder, LoadedWeights weights = LoadedWeights::mapped);

}  // namespace attune

#pragma once
// Opens model folders for use: Attune's own (io/model_folder.h) and those of the Hugging Face hub, as they are.

#include <filesystem>
#include <memory>

#include "attune/hub/adapter_folders.h"
#include "attune/io/config_file.h"
#include "attune/io/model_folder.h"

namespace [[gnu::visibility("default")]] attune {

class HubFolder;

/// What a folder is loaded as for products of this precision on a device: with panels for the CPU; elsewhere as
/// tensors, which other devices read, with panels only where the folder has them.
inline LoadedWeights weights_for(ProductPrecision precision, const Device& device) {
  if (device.is_host()) return panels_for(precision);
  return precision == ProductPrecision::bfloat16 ? LoadedWeights::bfloat16_tensors : LoadedWeights::mapped;
}

/// A folder whose config.json has been read, so that it is read once to ask what the folder is and to load it. A folder
/// with an adapter of PEFT stands for the model that its adapter_config.json names, whose weights have the adapter
/// added when they are loaded: see hub/adapter_folder.h.
class OpenedFolder {
 public:
  /// Throws FileError or ConfigError.
  explicit OpenedFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const;  // of the model, not of its adapter
  /// The model's configuration; that of a folder of the hub is translated into ours.
  const ConfigFile& config() const;
  /// Null for Attune's own folders. For Attune's own programs: no public header defines HubFolder.
  const HubFolder* hub() const;

  /// As open_model_folder() and its like. The model is then moved to `device`; see weights_for(). `adapters` are those
  /// that requests choose from, see AdapterFolders. Throw FileError also for a tensor of an adapter that does not fit
  /// the model, and ConfigError.
  ModelFolder load_model(LoadedWeights weights = LoadedWeights::mapped, const AdapterFolders& adapters = {},
                         const Device& device = {}) const;
  LanguageModelFolder load_language_model(LoadedWeights weights = LoadedWeights::mapped,
                                          const AdapterFolders& adapters = {}, const Device& device = {}) const;
  ClassifierFolder load_classifier(LoadedWeights weights = LoadedWeights::mapped, const Device& device = {}) const;
  EncoderFolder load_encoder(LoadedWeights weights = LoadedWeights::mapped, const Device& device = {}) const;
  MaskedLmFolder load_masked_lm(LoadedWeights weights = LoadedWeights::mapped, const Device& device = {}) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

/// Loads the folder with load_model() or the function beside it that fits the architecture, and returns what `use`
/// returns of the result.
template <class Use>
auto load_by_architecture(const OpenedFolder& folder, LoadedWeights weights, Use&& use) {
  switch (folder.config().model.architecture) {
    case Architecture::encoder_decoder:
      return use(folder.load_model(weights));
    case Architecture::decoder_lm:
      return use(folder.load_language_model(weights));
    case Architecture::encoder_classifier:
      return use(folder.load_classifier(weights));
    case Architecture::encoder:
      return use(folder.load_encoder(weights));
    case Architecture::encoder_masked_lm:
      break;
  }
  return use(folder.load_masked_lm(weights));
}

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
MaskedLmFolder open_masked_lm_folder(const std::filesystem::path& folder,
                                     LoadedWeights weights = LoadedWeights::mapped);

}  // namespace attune

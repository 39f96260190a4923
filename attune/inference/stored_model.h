#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "attune/hub/open_folder.h"
#include "attune/text/tokenizer_files.h"

namespace attune {

/// A loaded folder of any architecture. Loading has checked all that its users read.
struct StoredModel {
  std::unique_ptr<Module> model;
  TokenizerPair tokenizers;
  /// Writes generation_config.json, how texts are pooled, and the template of chats.
  std::function<void(const std::filesystem::path& folder)> write_settings;
};

/// Throws FileError and ConfigError.
StoredModel open_stored_model(const OpenedFolder& folder, LoadedWeights weights);

/// The configuration of the model as it is stored. share_projection is false if an adapter has given the projection a
/// matrix of its own.
TransformerConfig stored_config(const OpenedFolder& from, Module& model);

/// Writes the files of one of Attune's own folders. Calls `before_each` before it writes a parameter. Throws FileError.
void save_stored_model(const std::filesystem::path& folder, const OpenedFolder& from, const StoredModel& files,
                       const std::function<void()>& before_each = {});

}  // namespace attune

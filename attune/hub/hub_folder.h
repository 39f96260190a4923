#pragma once
// A folder as on the Hugging Face hub: another program's config.json and tensors, read as they are.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attune/hub/family.h"
#include "attune/io/model_folder.h"
#include "attune/io/safetensors.h"

namespace attune {

/// A head for labels that is stored beside its model.
struct StoredHead {
  SafetensorsReader file;            // whose tensors have the names of the model's family
  std::vector<std::string> tensors;  // those of the head
  std::vector<std::string> labels;   // empty: they are called LABEL_0, LABEL_1 and so on
  bool is_regression = false;        // it gives numbers
  Json form = Json::object();        // fields of [model] that are not as in the family's classifier, "pooling" say
};

class HubFolder {
 public:
  /// Reads config.json and the headers of the tensors. Checks the sizes of the model against those of the files, so
  /// that nothing of a hostile size is built. Throws FileError, and ConfigError naming the field that is not supported.
  explicit HubFolder(const std::filesystem::path& folder);
  /// Opens a folder of the hub, or reads config.json of one of Attune's own folders. With a head, a model of the hub
  /// becomes its family's classifier with this head; a classifier gets it in the place of its own. Throws ConfigError
  /// too when config.json is no object with a "model_type".
  static std::variant<HubFolder, ConfigFile> open(const std::filesystem::path& folder,
                                                  const std::optional<StoredHead>& head = {});

  const TransformerConfig& config() const { return config_; }
  const HubConfig& hub_config() const { return hub_; }
  /// How many numbers the files have in bfloat16.
  int64_t bfloat16_count() const { return tensors_.bfloat16_count(); }

  /// The class of transformers that config.json names.
  std::string_view class_name() const { return class_.name; }
  /// Throws FileError naming a tensor that is missing, unknown or of another shape. Reads no values.
  void check() const;

  /// The place of one of our parameters in the family's files; nothing if it has none there.
  std::optional<Place> place_of(const std::string& parameter) const;

  /// Builds the model: build_model() of config().
  std::unique_ptr<Module> load(LoadedWeights weights) const;

 private:
  HubFolder(const std::filesystem::path& folder, HubConfig config, const std::optional<StoredHead>& head);
  /// Makes config.json and tensors those of the family's classifier with this head.
  void add_head(const StoredHead& head);
  /// Makes the projection's tensor the embedding's where the two are tied and the files have it under the projection's
  /// name alone. Returns whether it did.
  bool take_tied_embedding();
  /// The configuration, with the labels of the head unless it has none.
  TransformerConfig translate(const std::optional<StoredHead>& head = {}) const;
  HubFiles files() const;
  std::vector<FoundParameter> found_in(Module& model) const;
  /// Gives a model of config(), which build_without_values() has built, the values of the files.
  void fill(Module& model, LoadedWeights weights) const;

  HubConfig hub_;
  const Family& family_;
  HubClass class_;
  HubTensors tensors_;
  TransformerConfig config_;
};

}  // namespace attune

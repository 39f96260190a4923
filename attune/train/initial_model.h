#pragma once
// The model that a run begins with.

#include <filesystem>
#include <string>
#include <vector>

#include "attune/base/json.h"
#include "attune/hub/open_folder.h"
#include "attune/train/config.h"

namespace attune {

/// The folder of the model that train.initialize_from names: the folder itself, or, of a run, its model/.
std::filesystem::path initial_model_folder(const std::string& initialize_from);

struct FilledModel {
  std::vector<std::string> new_names;  // of parameters that the initial model does not have
  std::string message;                 // "38 of 40 parameters from runs/mlm/model; new: head.weight, head.bias"
};

/// What train.initialize_from names: a folder of Attune's or of the Hugging Face hub.
class InitialModel {
 public:
  /// Reads config.json. Throws FileError or ConfigError.
  explicit InitialModel(const std::string& initialize_from);

  const OpenedFolder& folder() const { return folder_; }
  /// The model's own architecture.
  Architecture architecture() const { return folder_.config().model.architecture; }
  /// What the model says of a run that begins with it: [model] and, as far as the architecture has them, the text's
  /// form in [data], [generation] and [sampling]. An encoder of any kind can become one of another kind; its head is
  /// then new and has its defaults. Throws ConfigError for any other change.
  Json sections(Architecture architecture) const;

  /// Throws ConfigError naming both values where `config` contradicts the model. Dropouts, initialisations, labels,
  /// context_length and the fields of a new head may differ.
  void check(const RunConfig& config) const;

  /// Whether fill() gives every parameter of the run's model a value.
  bool has_all_parameters(const RunConfig& config) const;
  /// Gives the parameters of `model`, which was built of config.model, the values of those with the same name. A
  /// classifier's head is new where the labels are others. With adapters and lora.base_precision = int8, the matrices
  /// are quantised, one after the other, and have no tensors then. Throws ConfigError and FileError.
  FilledModel fill(const RunConfig& config, Module& model) const;

  /// A digest of the sizes of the files with parameters and of samples of them: another for a model that was trained
  /// further. Throws FileError.
  std::string sha256_of_samples() const;

 private:
  TransformerConfig config_for(Architecture architecture) const;

  std::string name_;  // as the user wrote it
  OpenedFolder folder_;
};

}  // namespace attune

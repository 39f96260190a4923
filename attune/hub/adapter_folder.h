#pragma once
// A folder with adapters in the format of PEFT (Hugging Face's library): adapter_config.json and
// adapter_model.safetensors.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attune/hub/adapter_folders.h"
#include "attune/hub/hub_config.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/open_folder.h"
#include "attune/nn/adapters/lora_config.h"
#include "attune/nn/module.h"
#include "attune/text/chat_template.h"

namespace attune {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterFile = "adapter_model.safetensors";
inline constexpr const char* kAdapterFolder = "adapter";  // beside the model of a run that trained adapters

struct AdapterDescription {
  const OpenedFolder& base;              // the model that the adapters are for
  LoraConfig lora;                       // as they were made
  std::vector<std::string> saved;        // parameters of a new head, which are stored too
  std::vector<std::string> labels = {};  // of a classifier; stored with a new head
  bool is_regression = false;            // the new head gives numbers; stored with it
};

/// Writes the adapters of a module under the names that transformers gives the projections of the base model's family.
/// Where the family stores several projections as one (queries, keys and values of GPT-2), their adapters become one,
/// of the sum of their ranks. Those of Attune's own models have Attune's names. Throws FileError.
void write_adapter(const std::filesystem::path& folder, Module& module, const AdapterDescription& description);

/// Whether the folder holds an adapter and no model.
bool is_adapter_folder(const std::filesystem::path& folder);

/// adapter_config.json of a folder. Throws FileError and ConfigError.
HubConfig read_adapter_config(const std::filesystem::path& folder);

/// The folder of the model that an adapter is for: "base_model_name_or_path". A relative path begins at the adapter's
/// folder or, if there is no such model, at the current directory. Throws FileError and ConfigError, also where there
/// is no such folder.
std::filesystem::path adapter_base(const std::filesystem::path& folder);

/// The chat template of a folder. For an adapter's folder without one, that of its model. Throws as
/// ChatTemplate::load() and adapter_base() do.
std::optional<ChatTemplate> open_chat_template(const std::filesystem::path& folder);

/// The head for labels that a folder has beside its adapters; none where these are for another task. Throws FileError
/// and ConfigError.
std::optional<StoredHead> head_of_adapter(const std::filesystem::path& folder);

/// Reads the adapters of a folder, under either names, into the projections of a module that was built of the base
/// model, and the parameters that are stored beside them. The folder may be hostile. Throws FileError naming the
/// tensor, and ConfigError naming the field of adapter_config.json, that does not fit or is not supported, and
/// DataError where an expression of "alpha_pattern" takes too many steps.
void read_adapter(const std::filesystem::path& folder, const OpenedFolder& base, Module& module);

/// Gives the projections of a module that was built of the base model, panels too, the adapters of these folders to
/// choose from, see Adapter. Returns their names by number. Throws as read_adapter() does, and ConfigError where a
/// folder adapts more than the projections of the layers.
std::vector<std::string> read_adapter_choices(const AdapterFolders& folders, const OpenedFolder& base, Module& module);

}  // namespace attune

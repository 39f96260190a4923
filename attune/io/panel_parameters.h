#pragma once
// Weights that are packed for inference, in a file: of each the panels and their scales in place of the matrix.

#include <filesystem>
#include <functional>

#include "attune/nn/module.h"
#include "attune/ops/panel_weight.h"

namespace attune {

/// Every parameter of the module as save_parameters() writes it, but matrices that products and embeddings read as
/// "NAME.packed" and "NAME.scales" in `format`, see PanelWeight. Those of latent attention's decompressions stay as
/// they are: decoding folds them into queries and outputs, by rows and by columns. `before_each` is called
/// before each matrix; what it throws leaves no file. Throws FileError.
void save_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format,
                           const std::function<void()>& before_each = {});

/// Fills a module with what save_panel_parameters() wrote in `format`: its weights are there in packed form alone
/// then, as pages of the file, see map_parameters(). Every part must be there with its size and type, and nothing else
/// may be: FileError names the first that is missing, unknown or different, and the module is then as it was. Does not
/// need the module's parameters to have values, see NoInitialization.
void map_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format);

}  // namespace attune

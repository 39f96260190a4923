#pragma once
// Files with weights as panels: for each weight the panels and their scales instead of the matrix.

#include <filesystem>
#include <functional>

#include "attune/nn/module.h"
#include "attune/ops/linear/panel_weight.h"

namespace attune {

/// Writes the parameters of the module as save_parameters() does, except that matrices which products and embeddings
/// read become panels "NAME.panels" and "NAME.scales" in `format`, see PanelWeight. The decompressions of latent
/// attention stay matrices, because decoding reads them by rows and by columns. Calls `before_each` before each matrix;
/// when that throws, no file is left. Throws FileError.
void save_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format,
                           const std::function<void()>& before_each = {});

/// Fills a module with what save_panel_parameters() wrote in `format`. Its weights then have panels and no tensors; the
/// panels are pages of the file, see map_parameters(). The file must have every part with its size and type, and
/// nothing else. Otherwise throws FileError, which names the first that is missing, unknown or different, and leaves
/// the module as it was. The module's parameters need no values before, see NoInitialization.
void map_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format);

}  // namespace attune

#pragma once

#include <functional>
#include <optional>

#include "attune/base/execution.h"
#include "attune/nn/module.h"
#include "attune/ops/linear/panel_weight.h"

namespace attune {

/// What make_panels() calls for each weight, one after the other. Both may be null.
struct PanelInputs {
  /// Returns the values of a weight, in its shape and type; the weight's own tensor may not have them yet. They are
  /// freed before the next weight is read.
  std::function<Tensor(const Tensor& weight)> read = {};
  /// Called with the values after the panels were made of them.
  std::function<void(const Tensor& values)> done = {};
};

/// Makes panels for inference of every parameter that products read, in addition to its tensor; parameters that share
/// memory share panels. Products that record no gradients then read the panels, which do not follow changes of the
/// tensors: use it on a module that nobody trains, one just loaded or made by copy_for_inference(). Without a format,
/// float32 tensors get panels in float32, and bfloat16 tensors in bfloat16. Embedding tables, parameters of other types
/// and those that have only panels are not changed.
void make_panels(Module& module, std::optional<WeightFormat> format = {}, const PanelInputs& inputs = {});

/// Calls make_panels() if a parameter lacks the panels that it would get. A model that is not on the CPU gets none in
/// float32 and bfloat16: other devices read tensors.
void ensure_panels(Module& module, std::optional<WeightFormat> format = {});

/// The format of panels that products of this precision need; none: that of their tensors.
inline std::optional<WeightFormat> panel_format(ProductPrecision precision) {
  if (precision == ProductPrecision::bfloat16) return WeightFormat::bfloat16;
  return std::nullopt;
}

/// Rounds to bfloat16 the parameters that only products read, or only products and lookups, so that products in
/// bfloat16 do not round them each time. For devices that read tensors. Adjacent parameters stay adjacent. All others
/// stay as they are, also those that are read by element as well, as the decompressions of latent attention are. If
/// anything is rounded, parameters that have tensors lose their panels.
void round_matrices(Module& module);

/// Removes the tensors that only products and lookups read, where there are panels. An embedding whose table is also a
/// product's then reads the panels, so that the matrix is in memory once.
void keep_panels_alone(Module& module);

/// Removes the panels of every parameter that has a tensor.
void drop_panels(Module& module);

/// Makes `to` a copy of `from` for inference. `to` has the same structure and was built for this (under
/// NoInitialization). Weights that only products read get only panels; all else is copied. `from` is only read;
/// training it afterwards, on any thread, does not change `to`. Panels that `from` has are shared. Others are made as
/// ensure_panels() makes them for a model on `device` (none: on the device of `from`). The copy itself is on the device
/// of `from`. Throws ShapeError when the structures differ.
void copy_for_inference(Module& from, Module& to, std::optional<WeightFormat> format = {},
                        const std::optional<Device>& device = {});

}  // namespace attune

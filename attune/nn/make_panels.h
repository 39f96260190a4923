#pragma once

#include <functional>
#include <optional>

#include "attune/base/execution.h"
#include "attune/nn/module.h"
#include "attune/ops/linear/panel_weight.h"

namespace attune {

/// What make_panels() calls for each weight, one after the other. Both may be null.
struct PanelInputs {
  /// Returns the values of a weight whose tensor may be without them: of its shape and type. What it allocates is free
  /// again before the next weight is read.
  std::function<Tensor(const Tensor& weight)> read = {};
  /// Called with the values after the panels were made of them.
  std::function<void(const Tensor& values)> done = {};
};

/// Gives parameters that products read panels for inference, in addition to their tensors; parameters that share memory
/// share panels. Products that record no gradients then read the panels, which do not follow changes of the tensors:
/// use it on a module that nobody trains, one just loaded or made by copy_for_inference(). Without a format, float32
/// tensors get panels in float32, and bfloat16 tensors in bfloat16. Embedding tables, parameters of other types and
/// those that have only panels are not changed.
void make_panels(Module& module, std::optional<WeightFormat> format = {}, const PanelInputs& inputs = {});

/// Calls make_panels(), unless every parameter that it would give panels has panels already. A model that is not on the
/// CPU gets none in float32 and bfloat16: other devices read tensors.
void ensure_panels(Module& module, std::optional<WeightFormat> format = {});

/// The format of panels that products of this precision need; none: that of their tensors.
inline std::optional<WeightFormat> panel_format(ProductPrecision precision) {
  if (precision == ProductPrecision::bfloat16) return WeightFormat::bfloat16;
  return std::nullopt;
}

/// For products in bfloat16 on a device that reads tensors: rounds to bfloat16 what products alone read, or products
/// and lookups, so that products do not round it each time. What is adjacent stays adjacent. All else stays as it is,
/// and so does what is read by element too, as the decompressions of latent attention are. If anything is rounded,
/// panels of what has a tensor are dropped.
void round_matrices(Module& module);

/// Removes the tensors that only products and lookups read, where there are panels. An embedding whose table is also a
/// product's then reads the panels, so that the matrix is in memory once.
void keep_panels_alone(Module& module);

/// Removes the panels of every parameter that has a tensor.
void drop_panels(Module& module);

/// Makes `to` a copy of `from` for inference. `to` has the same structure and was built for this (under
/// NoInitialization). Weights that only products read get only panels; all else is copied. `from` is only read;
/// training it afterwards, on any thread, does not change `to`. Panels that `from` has are shared; without a format,
/// others are as ensure_panels() makes them for a model on `device`, none: on that of `from`, where the copy is in any
/// case. Throws ShapeError when the structures differ.
void copy_for_inference(Module& from, Module& to, std::optional<WeightFormat> format = {},
                        const std::optional<Device>& device = {});

}  // namespace attune

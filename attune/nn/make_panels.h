#pragma once

#include <functional>

#include "attune/nn/module.h"
#include "attune/ops/panel_weight.h"

namespace attune {

/// Gives the parameters that products read panels for inference, beside their tensors, which stay; one that is shared
/// has them once. Where nothing records gradients products read them from then on, so that results are those of this
/// moment. For a module that nobody trains: one that was just loaded, or copy_for_inference(). Tables of embeddings,
/// parameters that are not float32 and those that have panels alone are left as they are. `done` is told of each
/// tensor once it was read.
void make_panels(Module& module, WeightFormat format, const std::function<void(const Tensor& weight)>& done = {});

/// make_panels() in float32, unless every parameter that it would give panels has some.
void ensure_panels(Module& module);

/// Back to the tensors, where there are any.
void drop_panels(Module& module);

/// Makes `to`, a module of the same structure built for this (under NoInitialization), a copy of `from` for inference:
/// what products alone read has panels alone, everything else is copied. Whoever trains `from` afterwards, in whatever
/// thread, changes nothing in `to`. `from` is only read. Panels that `from` has are shared. Throws ShapeError when the
/// structures differ.
void copy_for_inference(Module& from, Module& to, WeightFormat format = WeightFormat::float32);

}  // namespace attune

#pragma once

#include <functional>

#include "attune/nn/module.h"
#include "attune/ops/panel_weight.h"

namespace attune {

/// Lays the weights of all products out for inference, beside the parameters, which stay. Where nothing records
/// gradients products use them from then on, and so their results are those of this moment: who writes parameters
/// afterwards packs again. One that is shared is packed once; tables of embeddings and weights that are not float32 are
/// left as they are, as are those that are there in packed form alone. `packed` is told of each when it was read.
void make_panels(Module& module, WeightFormat format, const std::function<void(const Tensor& weight)>& packed = {});

/// make_panels() in float32, unless every weight that it would pack has been packed already.
void ensure_panels(Module& module);

/// Back to the parameters.
void drop_panel_weights(Module& module);

}  // namespace attune

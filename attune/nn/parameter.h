#pragma once

#include <memory>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

class PanelWeight;  // attune/ops/panel_weight.h

/// What reads a parameter, which says how it may be stored for inference.
enum class ParameterUse {
  elements,              // all of it as it is: biases, norms, tables of positions
  lookup,                // some rows: embeddings
  product,               // matrix products, as [out, in]
  product_and_elements,  // matrix products, and all of it as it is
};

/// Numbers that training changes and files hold.
struct Parameter {
  Tensor tensor = {};  // undefined where there are panels alone
  ParameterUse use = ParameterUse::elements;
  bool trained = true;  // false: require_gradients() leaves it out
  /// The matrix as products and lookups of inference read it, or null. They are of one moment, so that only modules
  /// made for inference have them: see make_panels().
  std::shared_ptr<const PanelWeight> panels = {};

  bool defined() const { return tensor.defined() || panels != nullptr; }
  /// Of what is computed with it.
  DType dtype() const { return tensor.defined() ? tensor.dtype() : DType::f32; }
};

}  // namespace attune

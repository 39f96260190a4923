#pragma once

#include <memory>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

class PanelWeight;  // attune/ops/linear/panel_weight.h

/// How a parameter is read. This decides how it may be stored for inference.
enum class ParameterUse {
  elements,              // as a plain tensor: biases, norms, tables of positions
  lookup,                // row by row: embeddings
  product,               // by matrix products, as [out, in]
  product_and_elements,  // by matrix products and as a plain tensor
};

/// A tensor that training changes and model files store.
struct Parameter {
  Tensor tensor = {};  // undefined where `panels` or `quantised` stand alone; in inference it may be bfloat16
  ParameterUse use = ParameterUse::elements;
  bool trained = true;  // false: require_gradients() leaves it out
  /// The matrix laid out for products and lookups of inference, or null. Panels do not follow changes of the tensor, so
  /// only modules made for inference have them: see make_panels().
  std::shared_ptr<const PanelWeight> panels = {};
  /// A quantised matrix in place of the tensor, which training reads and does not change, see
  /// LinearParameters::quantised. Null in models for inference.
  std::shared_ptr<const PanelWeight> quantised = {};

  bool defined() const { return tensor.defined() || panels != nullptr || quantised != nullptr; }
  /// The dtype of what is computed with this parameter: float64 where its tensor is float64, else float32.
  DType dtype() const { return tensor.defined() && tensor.dtype() == DType::f64 ? DType::f64 : DType::f32; }
};

}  // namespace attune

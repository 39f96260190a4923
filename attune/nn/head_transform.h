#pragma once

#include <memory>

#include "attune/nn/layer_norm.h"
#include "attune/nn/linear.h"

namespace [[gnu::visibility("default")]] attune {

/// norm(activation(x W^T + b)) in front of a head; the norm may be missing.        [..., in] -> [..., out]
/// Source: Devlin et al. 2019 and their published code, for the pooler and for the prediction of masked tokens.
class HeadTransform final : public Module {
 public:
  HeadTransform(std::unique_ptr<Linear> linear, std::unique_ptr<LayerNorm> norm)
      : linear_(std::move(linear)), norm_(std::move(norm)) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor y = (*linear_)(x);
    return norm_ ? (*norm_)(y) : y;
  }
  void visit(Visitor& v) override {
    linear_->visit(v);  // "weight", "bias"
    if (norm_) v("norm", *norm_);
  }

 private:
  std::unique_ptr<Linear> linear_;
  std::unique_ptr<LayerNorm> norm_;  // or null
};

}  // namespace attune

#pragma once

#include "attune/nn/module.h"
#include "attune/ops/layer_norm.h"

namespace attune {

/// gain (x - mean) / sqrt(variance + epsilon) + bias, or gain (x - mean) / (std + epsilon) + bias      [..., d] -> same
/// Source: Ba et al. 2016, equation 4; the second form is The Annotated Transformer's.
class LayerNorm final : public Module {
 public:
  LayerNorm(int64_t d_model, const LayerNormOptions& options)
      : gain_(Tensor::full({d_model}, 1.0)), bias_(Tensor::zeros({d_model})), options_(options) {}

  Tensor operator()(const Tensor& x) const { return layer_norm(x, gain_, bias_, options_); }
  /// LayerNorm(x + dropout(y)) in one pass.
  Tensor of_sum(const Tensor& x, const Tensor& y, const DropoutMask& mask) const {
    return residual_dropout_layer_norm(x, y, mask, gain_, bias_, options_);
  }
  void visit(Visitor& v) override {
    v("gain", gain_);
    v("bias", bias_);
  }

 private:
  Tensor gain_;
  Tensor bias_;
  LayerNormOptions options_;
};

}  // namespace attune

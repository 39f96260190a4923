#pragma once

#include "attune/base/fields.h"
#include "attune/nn/module.h"
#include "attune/ops/layer_norm.h"

namespace [[gnu::visibility("default")]] attune {

template <>
struct EnumNames<NormForm> {
  static constexpr std::pair<NormForm, const char*> values[] = {
      {NormForm::variance, "variance"}, {NormForm::unbiased_std, "unbiased_std"}, {NormForm::rms, "rms"}};
};
/// The norms of a model.
struct LayerNormConfig {
  LayerNormOptions options = {};
  bool bias = true;  // the rms form has none
};

/// Normalises each row in one of the forms of ops/layer_norm.h, multiplies by `weight` and adds `bias`, if there is
/// one; the rms form has none.        [..., d] -> same
class LayerNorm final : public Module {
 public:
  LayerNorm(int64_t d_model, const LayerNormOptions& options, bool bias = true)
      : weight_{.tensor = Tensor::full({d_model}, 1.0)},
        bias_{.tensor = bias && has_bias(options.form) ? Tensor::zeros({d_model}) : Tensor{}},
        options_(options) {}

  LayerNorm(int64_t d_model, const LayerNormConfig& config) : LayerNorm(d_model, config.options, config.bias) {}

  static int64_t parameter_count(int64_t d_model, NormForm form, bool bias = true) {
    return (bias && has_bias(form) ? 2 : 1) * d_model;
  }

  Tensor operator()(const Tensor& x) const { return layer_norm(x, weight_.tensor, bias_.tensor, options_); }
  /// The same for a result that only products read; see LayerNormOptions::for_products.
  Tensor for_products(const Tensor& x) const {
    LayerNormOptions options = options_;
    options.for_products = true;
    return layer_norm(x, weight_.tensor, bias_.tensor, options);
  }
  /// LayerNorm(x + dropout(y)) in one pass.
  Tensor of_sum(const Tensor& x, const Tensor& y, const DropoutMask& mask) const {
    return residual_dropout_layer_norm(x, y, mask, weight_.tensor, bias_.tensor, options_);
  }
  void visit(Visitor& v) override {
    v("weight", weight_);
    if (bias_.defined()) v("bias", bias_);
  }

 private:
  static bool has_bias(NormForm form) { return form != NormForm::rms; }

  Parameter weight_;  // [d]
  Parameter bias_;    // [d], or undefined
  LayerNormOptions options_;
};

}  // namespace attune

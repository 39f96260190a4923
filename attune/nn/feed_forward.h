#pragma once

#include "attune/nn/dropout.h"
#include "attune/nn/linear.h"

namespace attune {

struct FeedForwardConfig {
  int64_t d_model = 512;
  int64_t d_ff = 2048;
  FusedActivation activation = FusedActivation::relu;
  double dropout = 0;  // after the activation
};

/// FFN(x) = act(x W1 + b1) W2 + b2, Vaswani et al. 2017, section 3.3.        [tokens, d_model] -> same
class FeedForward final : public Module {
 public:
  explicit FeedForward(const FeedForwardConfig& config)
      : linear_1_(config.d_model, config.d_ff, true, config.activation),
        linear_2_(config.d_ff, config.d_model),
        dropout_(config.dropout) {}
  Tensor operator()(const Tensor& x) const { return linear_2_(dropout_(linear_1_(x))); }
  void visit(Visitor& v) override {
    v("linear_1", linear_1_);
    v("linear_2", linear_2_);
    v("dropout", dropout_);
  }

 private:
  Linear linear_1_, linear_2_;
  Dropout dropout_;
};

}  // namespace attune

#pragma once

#include "attune/nn/module.h"
#include "attune/ops/linear.h"

namespace attune {

/// activation(x W^T + b)        [..., in] -> [..., out]
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, FusedActivation activation = FusedActivation::none)
      : weight_(Tensor::zeros({out, in})), bias_(bias ? Tensor::zeros({out}) : Tensor{}), activation_(activation) {}

  Tensor operator()(const Tensor& x) const { return linear(x, weight_, bias_, activation_); }
  Tensor& weight() { return weight_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

  void visit(Visitor& v) override {
    v("weight", weight_);
    if (bias_.defined()) v("bias", bias_);
  }

 private:
  Tensor weight_;  // [out, in]
  Tensor bias_;    // [out], or undefined
  FusedActivation activation_;
};

}  // namespace attune

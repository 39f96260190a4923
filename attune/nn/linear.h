#pragma once

#include "attune/nn/module.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/linear.h"

namespace attune {

/// activation(x W^T + b)        [..., in] -> [..., out]
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, FusedActivation activation = FusedActivation::none)
      : weight_(new_parameter({out, in})), bias_(bias ? new_parameter({out}) : Tensor{}), activation_(activation) {}

  /// Of parameters that are made elsewhere, rows of larger ones for instance; see linear_side_by_side.
  explicit Linear(const LinearParameters& parameters) : weight_(parameters.weight), bias_(parameters.bias) {}

  Tensor operator()(const Tensor& x) const { return linear(x, weight_, bias_, activation_); }
  /// With dropout, and for readers that take a narrow result; see LinearOptions.
  Tensor narrow(const Tensor& x, const DropoutMask& dropout = {}) const {
    return linear(x, weight_, bias_, {.activation = activation_, .dropout = dropout, .narrow = true});
  }
  Tensor& weight() { return weight_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  LinearParameters parameters() const { return {weight_, bias_}; }

  void visit(Visitor& v) override {
    v("weight", weight_);
    if (bias_.defined()) v("bias", bias_);
  }

 private:
  Tensor weight_;  // [out, in]
  Tensor bias_;    // [out], or undefined
  FusedActivation activation_ = FusedActivation::none;
};

/// New parameters for several products of one input, which lie one after the other in memory.
inline std::vector<LinearParameters> adjacent_parameters(int64_t in, std::initializer_list<int64_t> outs, bool bias) {
  int64_t row = 0;
  for (const int64_t out : outs) row += out;
  const Tensor weights = new_parameter({row, in}), biases = bias ? new_parameter({row}) : Tensor{};
  std::vector<LinearParameters> parameters;
  row = 0;
  for (const int64_t out : outs) {
    parameters.push_back({weights.rows(row, row + out), bias ? biases.rows(row, row + out) : Tensor{}});
    row += out;
  }
  return parameters;
}

}  // namespace attune

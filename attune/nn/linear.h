#pragma once

#include <array>
#include <initializer_list>

#include "attune/autograd/graph.h"
#include "attune/nn/module.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/linear.h"
#include "attune/ops/panel_linear.h"
#include "attune/ops/precision.h"

namespace [[gnu::visibility("default")]] attune {

/// Whether a product of x uses what its weight is packed into: nothing is recorded, and it is in float32.
inline bool uses_panels(const PanelSlot& packed, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return packed && x.dtype() == DType::f32 && !bfloat16_products() &&
         (!gradients_enabled() || !is_recording({x, weight, bias}));
}

/// activation(x W^T + b)        [..., in] -> [..., out]
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, Activation activation = Activation::none)
      : weight_(new_parameter({out, in})), bias_(bias ? new_parameter({out}) : Tensor{}), activation_(activation) {}

  /// Of parameters that are made elsewhere, rows of larger ones for instance; see fused_linear.
  explicit Linear(const LinearParameters& parameters) : weight_(parameters.weight), bias_(parameters.bias) {}

  Tensor operator()(const Tensor& x) const {
    if (uses_panels(x)) return panel_linear(x, *panels_, bias_, activation_);
    return linear(x, weight_, bias_, activation_);
  }
  /// With dropout, and for readers that take a bf16_output result; see LinearOptions.
  Tensor bf16_output(const Tensor& x, const DropoutMask& dropout = {}) const {
    if (!dropout.active() && uses_panels(x)) return panel_linear(x, *panels_, bias_, activation_);
    return linear(x, weight_, bias_, {.activation = activation_, .dropout = dropout, .bf16_output = true});
  }
  Tensor& weight() { return weight_; }
  const Tensor& weight() const { return weight_; }
  /// Of what is computed with it: float32, where the weight is there in packed form alone.
  DType dtype() const { return weight_.defined() ? weight_.dtype() : DType::f32; }
  const Tensor& bias() const { return bias_; }
  LinearParameters parameters() const { return {weight_, bias_}; }
  PanelParameters panel_parameters() const { return {panels_.get(), bias_}; }
  /// See make_panels(); null, where the weight is not packed.
  const PanelSlot& packed() const { return panels_; }
  bool uses_panels(const Tensor& x) const { return attune::uses_panels(panels_, x, weight_, bias_); }

  void visit(Visitor& v) override {
    v("weight", weight_, panels_);
    if (bias_.defined()) v("bias", bias_);
  }

 private:
  Tensor weight_;     // [out, in]
  Tensor bias_;       // [out], or undefined
  PanelSlot panels_;  // of weight_, or null
  Activation activation_ = Activation::none;
};

/// The products of x with 2 or 3 layers without activations as one product: side by side, [..., sum of out], ...
Tensor fused(const Tensor& x, const Linear& first, const Linear& second, const Linear* third = nullptr);
/// ... or each on its own. That is one product where all are packed.
std::array<Tensor, 3> each_of(const Tensor& x, const Linear& first, const Linear& second,
                              const Linear* third = nullptr);

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

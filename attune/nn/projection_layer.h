#pragma once

#include "attune/nn/linear.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/linear_columns.h"

namespace [[gnu::visibility("default")]] attune {

/// logits = x W^T + b        [tokens, d_model] -> [tokens, vocab]
/// W may be an embedding's table, Vaswani et al. 2017, section 3.4.
class ProjectionLayer final : public Module {
 public:
  ProjectionLayer(int64_t d_model, int64_t vocab, bool bias = true)
      : ProjectionLayer(new_parameter({vocab, d_model}), bias) {}
  explicit ProjectionLayer(const Tensor& weight, bool bias = true)
      : weight_(weight), bias_(bias ? new_parameter({weight.size(0)}) : Tensor{}) {}

  Tensor operator()(const Tensor& x) const {
    return uses_panels(panels_, x, weight_, bias_) ? panel_linear(x, *panels_, bias_) : linear(x, weight_, bias_);
  }
  /// Of each row some logits alone, see linear_columns(). Called under NoGrad.
  Tensor operator()(const Tensor& x, std::span<const std::span<const int32_t>> columns) const {
    // The rows of a float32 weight lie together, as its panels' do not; the bits are the same.
    if (panels_ && (panels_->format() != WeightFormat::float32 || !weight_.defined()))
      return panel_linear_columns(x, *panels_, bias_, columns);
    return linear_columns(x, weight_, bias_, columns);
  }
  /// The loss of project(x), without ever holding all logits.
  CrossEntropy loss(const Tensor& x, const Indices& labels, const CrossEntropyOptions& options) const {
    if (!weight_.defined()) return panel_loss(x, labels, options);
    return linear_cross_entropy(x, weight_, bias_, labels, options);
  }
  void visit(Visitor& v) override {
    v("weight", weight_, panels_);
    if (bias_.defined()) v("bias", bias_);
  }

 private:
  CrossEntropy panel_loss(const Tensor& x, const Indices& labels, const CrossEntropyOptions& options) const;

  Tensor weight_;     // [vocab, d_model]
  Tensor bias_;       // [vocab], or undefined
  PanelSlot panels_;  // of weight_, or null
};

}  // namespace attune

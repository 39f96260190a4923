#pragma once

#include "attune/nn/projection.h"
#include "attune/ops/scale.h"

namespace [[gnu::visibility("default")]] attune {

/// logits = (scale x) W^T + b        [tokens, d_model] -> [tokens, vocab]
/// W may be the table of an embedding: Vaswani et al. 2017, section 3.4. T5 has a scale of 1 / sqrt(d_model) then.
class ProjectionLayer final : public Module {
 public:
  ProjectionLayer(int64_t d_model, int64_t vocab, bool bias = true, double scale = 1)
      : projection_(new_projection(d_model, vocab, bias)), scale_(scale) {}
  explicit ProjectionLayer(const Tensor& weight, bool bias = true, double scale = 1);

  Tensor operator()(const Tensor& x) const { return project(scaled(x, scale_), projection_); }
  /// Only the logits columns[r] of row r, see linear_columns(). Call it under NoGrad.
  Tensor operator()(const Tensor& x, std::span<const std::span<const int32_t>> columns) const {
    return project_columns(scaled(x, scale_), projection_, columns);
  }
  /// The loss of operator()(x), which never stores all logits.
  CrossEntropy loss(const Tensor& x, const Indices& labels, const CrossEntropyOptions& options) const {
    return projection_loss(scaled(x, scale_), projection_, labels, options);
  }
  void visit(Visitor& v) override { projection_.visit(v); }

 private:
  Projection projection_;
  double scale_;
};

}  // namespace attune

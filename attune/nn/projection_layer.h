#pragma once

#include "attune/nn/projection.h"
#include "attune/ops/activation.h"
#include "attune/ops/residual.h"
#include "attune/ops/scale.h"

namespace [[gnu::visibility("default")]] attune {

struct ProjectionOptions {
  bool bias = true;
  double scale = 1;     // of x; T5 has 1 / sqrt(d_model)
  double soft_cap = 0;  // c > 0: logits l become c tanh(l / c), Gemma Team 2024; 0: none
};

/// logits = (scale x) W^T + b        [tokens, d_model] -> [tokens, vocab]
/// W may be the table of an embedding: Vaswani et al. 2017, section 3.4.
class ProjectionLayer final : public Module {
 public:
  ProjectionLayer(int64_t d_model, int64_t vocab, const ProjectionOptions& options = {})
      : projection_(new_projection(d_model, vocab, options.bias)), options_(options) {}
  explicit ProjectionLayer(const Tensor& weight, const ProjectionOptions& options = {});

  Tensor operator()(const Tensor& x) const { return capped(project(scaled(x, options_.scale), projection_)); }
  /// Only the logits columns[r] of row r, see linear_columns(). Call it under NoGrad.
  Tensor operator()(const Tensor& x, std::span<const std::span<const int32_t>> columns) const {
    const Tensor y = project_columns(scaled(x, options_.scale), projection_, columns);
    // The cap makes the -inf of columns that a row does not have finite. The second term is -inf there, and too small
    // elsewhere to change a logit.
    return options_.soft_cap > 0 ? residual_dropout(capped(y), scaled(y, 1e-30)) : y;
  }
  /// The loss of operator()(x). Without a soft cap it never stores all logits.
  CrossEntropy loss(const Tensor& x, const Indices& labels, const CrossEntropyOptions& options) const {
    if (options_.soft_cap > 0) return cross_entropy((*this)(x), labels, options);
    return projection_loss(scaled(x, options_.scale), projection_, labels, options);
  }
  void visit(Visitor& v) override { projection_.visit(v); }

 private:
  Tensor capped(const Tensor& logits) const {
    const double cap = options_.soft_cap;
    return cap > 0 ? scaled(tanh(scaled(logits, 1 / cap)), cap) : logits;
  }

  Projection projection_;
  ProjectionOptions options_;
};

}  // namespace attune

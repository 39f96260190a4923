#pragma once

#include "attune/nn/module.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/embedding.h"
#include "attune/ops/linear/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

/// embedding(ids) * sqrt(d_model), Vaswani et al. 2017, section 3.4; without the factor unless `scale`.
///   ids [tokens] -> [tokens, d_model]
/// To share the table of another embedding or of the projection, pass it to the constructor.
class InputEmbedding final : public Module {
 public:
  InputEmbedding(int64_t vocab, int64_t d_model, bool scale = true)
      : InputEmbedding(new_parameter({vocab, d_model}), scale) {}
  explicit InputEmbedding(const Tensor& table, bool scale = true);

  Tensor operator()(const Indices& ids) const {
    return weight_.tensor.defined() ? embedding(ids, weight_.tensor, scale_)
                                    : panel_embedding(ids, *weight_.panels, scale_);
  }
  const Tensor& weight() const { return weight_.tensor; }
  void visit(Visitor& v) override { v("weight", weight_); }

 private:
  Parameter weight_;  // [vocab, d_model]
  double scale_;
};

}  // namespace attune

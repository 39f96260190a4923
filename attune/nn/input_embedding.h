#pragma once

#include <cmath>

#include "attune/nn/module.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/embedding.h"
#include "attune/ops/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

/// embedding(ids) * sqrt(d_model), Vaswani et al. 2017, section 3.4, or without the factor.
///   ids [tokens] -> [tokens, d_model]
/// The table may be shared with another embedding or with the projection: pass theirs.
class InputEmbedding final : public Module {
 public:
  InputEmbedding(int64_t vocab, int64_t d_model, bool scale = true)
      : InputEmbedding(new_parameter({vocab, d_model}), scale) {}
  explicit InputEmbedding(const Tensor& table, bool scale = true)
      : weight_(table), scale_(scale ? std::sqrt(static_cast<double>(table.size(1))) : 1.0) {}

  Tensor operator()(const Indices& ids) const {
    return weight_.defined() ? embedding(ids, weight_, scale_) : panel_embedding(ids, *panels_, scale_);
  }
  Tensor& weight() { return weight_; }
  void visit(Visitor& v) override { v("weight", weight_, panels_, WeightUse::lookup); }

 private:
  Tensor weight_;     // [vocab, d_model], or undefined where it is there in packed form alone
  PanelSlot panels_;  // or null
  double scale_;
};

}  // namespace attune

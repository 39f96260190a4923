#pragma once

#include "attune/nn/dropout.h"
#include "attune/nn/layer_norm.h"
#include "attune/ops/residual.h"

namespace [[gnu::visibility("default")]] attune {

struct ResidualConnectionConfig {
  int64_t d_model = 512;
  double dropout = 0;
  bool pre_norm = true;
  LayerNormOptions layer_norm;
};

/// The sublayer may use its input only in matrix products.
/// post-norm: LayerNorm(x + dropout(sublayer(x))), Vaswani et al. 2017, section 3.1
/// pre-norm:  x + dropout(sublayer(LayerNorm(x))), Xiong et al. 2020        [tokens, d_model] -> same
class ResidualConnection final : public Module {
 public:
  explicit ResidualConnection(const ResidualConnectionConfig& config)
      : norm_(config.d_model, config.layer_norm), dropout_(config.dropout), pre_norm_(config.pre_norm) {}

  template <class Sublayer>
  Tensor operator()(const Tensor& x, Sublayer&& sublayer) const {
    if (pre_norm_) return residual_dropout(x, sublayer(norm_.for_products(x)), dropout_.mask());
    return norm_.of_sum(x, sublayer(x), dropout_.mask());
  }
  void visit(Visitor& v) override {
    v("norm", norm_);
    v("dropout", dropout_);
  }

 private:
  LayerNorm norm_;
  Dropout dropout_;
  bool pre_norm_;
};

}  // namespace attune

#pragma once

#include <memory>

#include "attune/nn/dropout.h"
#include "attune/nn/layer_norm.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/residual.h"

namespace [[gnu::visibility("default")]] attune {

struct ResidualConnectionConfig {
  int64_t d_model = 512;
  double dropout = 0;
  bool pre_norm = true;
  LayerNormOptions layer_norm;
  bool norm_bias = true;     // see LayerNormConfig
  bool input_norm = true;    // pre-norm: false leaves the norm out
  bool output_norm = false;  // pre-norm: another norm on what the sublayer returns
};

/// The sublayer may use its input only in matrix products.        [tokens, d_model] -> same
/// post-norm: LayerNorm(x + dropout(sublayer(x))), Vaswani et al. 2017, section 3.1
/// pre-norm:  x + dropout(sublayer(LayerNorm(x))), Xiong et al. 2020
///            x + dropout(LayerNorm(sublayer(LayerNorm(x)))) with output_norm, "sandwich": Ding et al. 2021
class ResidualConnection final : public Module {
 public:
  explicit ResidualConnection(const ResidualConnectionConfig& config)
      : norm_(!config.pre_norm || config.input_norm ? make_norm(config) : nullptr),
        output_norm_(config.pre_norm && config.output_norm ? make_norm(config) : nullptr),
        dropout_(config.dropout),
        pre_norm_(config.pre_norm) {}

  template <class Sublayer>
  Tensor operator()(const Tensor& x, Sublayer&& sublayer) const {
    return output(x, sublayer(input(x)));
  }
  /// What the sublayer reads.
  Tensor input(const Tensor& x) const { return pre_norm_ && norm_ ? norm_->for_products(x) : x; }
  /// The result, from x and what the sublayer returned.
  Tensor output(const Tensor& x, const Tensor& y) const {
    if (!pre_norm_) return norm_->of_sum(x, y, dropout_.mask());
    return residual_dropout(x, output_norm_ ? (*output_norm_)(for_sums(y)) : y, dropout_.mask());
  }
  void visit(Visitor& v) override {
    if (norm_) v("norm", *norm_);
    if (output_norm_) v("output_norm", *output_norm_);
    v("dropout", dropout_);
  }

 private:
  static std::unique_ptr<LayerNorm> make_norm(const ResidualConnectionConfig& config) {
    return std::make_unique<LayerNorm>(config.d_model, config.layer_norm, config.norm_bias);
  }

  std::unique_ptr<LayerNorm> norm_, output_norm_;  // or null
  Dropout dropout_;
  bool pre_norm_;
};

}  // namespace attune

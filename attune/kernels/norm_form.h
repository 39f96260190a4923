#pragma once

namespace [[gnu::visibility("default")]] attune {

/// What a row is divided by, and whether its mean is subtracted first. The formulas are in ops/layer_norm.h.
enum class NormForm { variance, unbiased_std, rms };

struct LayerNormOptions {
  NormForm form = NormForm::variance;
  double epsilon = 1e-5;      // above 0
  bool for_products = false;  // layer_norm() only: the result is bfloat16 where bfloat16_products()
};

}  // namespace attune

#pragma once
// Mixed precision, Micikevicius et al. 2018 with Kalamkar et al. 2019's bfloat16: matrix products take bfloat16 and
// accumulate in float32; parameters, norms, the residual stream, softmax and loss stay float32. No loss is scaled:
// bfloat16 has the range of float32.

#include <span>

#include "attune/base/execution.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// While one with bfloat16 lives, products of float32 parameters on this thread take bfloat16: `linear` and
/// `linear_cross_entropy`. What they keep for the gradient is bfloat16 too, and their backward follows that, wherever
/// it runs. Each parameter is converted once and its copy kept until the outermost one ends, so that parameters may
/// not change meanwhile. Changes Execution::precision.
class ProductPrecisionScope {
 public:
  explicit ProductPrecisionScope(ProductPrecision precision);

 private:
  ExecutionScope scope_;
};

/// Whether products on this thread take bfloat16: execution().precision.
bool bfloat16_products();

/// x in bfloat16, each number rounded to the nearest; x itself where it is that already. Not recorded.
Tensor to_bfloat16(const Tensor& x);
/// The way back.
Tensor to_float32(const Tensor& x);

/// x as the products of bfloat16_products() take it, for an x that several of them read; else x itself. Differentiable.
Tensor for_products(const Tensor& x);

/// The parameters of several products, one after the other, in bfloat16; kept while bfloat16_products().
Tensor stacked_in_bfloat16(std::span<const Tensor> parameters);

}  // namespace attune

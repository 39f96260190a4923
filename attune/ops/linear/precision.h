#pragma once
// Mixed precision (Micikevicius et al. 2018) with bfloat16 (Kalamkar et al. 2019): matrix products take bfloat16 and
// accumulate in float32; parameters, norms, the residual stream, softmax and loss stay float32. The loss is not scaled,
// since bfloat16 has the range of float32.

#include <span>

#include "attune/base/execution.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Sets Execution::precision while it lives. With bfloat16, products with float32 parameters on this thread take
/// bfloat16: `linear` and `linear_cross_entropy`. They also keep bfloat16 tensors for the gradient, and their backward
/// uses these on any thread. Each parameter is converted once; its copy is kept until the outermost scope ends, so
/// parameters may not change meanwhile. Parameters that are bfloat16 are read as they are.
class ProductPrecisionScope {
 public:
  explicit ProductPrecisionScope(ProductPrecision precision);

 private:
  ExecutionScope scope_;
};

/// Whether products on this thread take bfloat16: execution().precision.
bool bfloat16_products();

/// Whether a product of x takes bfloat16: x is bfloat16, or float32 and bfloat16_products().
bool takes_bfloat16(const Tensor& x);

/// The type in which numbers of this type are added: float32 for bfloat16, else their own.
constexpr DType sum_type(DType type) {
  return type == DType::bf16 ? DType::f32 : type;
}

/// x in bfloat16, each number rounded to the nearest; x itself if it is bfloat16 already. Not recorded.
Tensor to_bfloat16(const Tensor& x);
/// x in float32; x itself if it is float32 already. Not recorded.
Tensor to_float32(const Tensor& x);

/// If bfloat16_products(), a float32 x in bfloat16, converted once for several products; else x. Differentiable.
Tensor for_products(const Tensor& x);

/// A bfloat16 x in float32, for sums that need it; else x. Differentiable.
Tensor for_sums(const Tensor& x);

/// The parameters of several products, one below the other, in one tensor of this type; float32 and bfloat16 are
/// converted into each other. Not copied where they are adjacent (Tensor::joined) and have the type. Not recorded.
Tensor stacked(std::span<const Tensor> parameters, DType type);

/// The parameters of several products stacked in one bfloat16 tensor. If one is float32 and bfloat16_products(), the
/// tensor is kept until the outermost ProductPrecisionScope ends. bfloat16 parameters are not copied if they are
/// adjacent (Tensor::joined); else a copy is made each time, since kept ones could add up to a second model in memory.
/// Where the parameters have fewer than `least_rows` rows, rows of zeros follow up to this number.
Tensor stacked_in_bfloat16(std::span<const Tensor> parameters, int64_t least_rows = 0);

/// Returns x if it has at least `least_rows` rows, else a copy with this many, the last ones zeros. Not recorded.
Tensor with_rows(const Tensor& x, int64_t least_rows);

}  // namespace attune

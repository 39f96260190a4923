#pragma once
// Products of each head with its own matrix. Not differentiable.

#include "attune/tensor/tensor.h"

namespace attune {

/// y[r, h, :] = x[r, h, :] W_h, where W_h is rows [h * in, (h + 1) * in) of `weight`.
///   x [rows, heads, in]   weight [heads * in, out]   returns [rows, heads, out]
/// With latent attention this folds the decompression of the keys into the query (absorption).
Tensor per_head_matmul(const Tensor& x, const Tensor& weight);

/// y[r, h, :] = W_h x[r, h, :], where W_h is rows [h * out, (h + 1) * out) of `weight`.
///   x [rows, heads, in]   weight [heads * out, in]   returns [rows, heads, out]
/// With latent attention this decompresses the values after the weighted sum over latents.
Tensor per_head_matmul_transposed(const Tensor& x, const Tensor& weight);

}  // namespace attune

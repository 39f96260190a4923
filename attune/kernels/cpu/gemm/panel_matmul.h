#pragma once

#include "attune/kernels/cpu/gemm/matmul_shape.h"
#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// c = activation(op(a) op(b) + bias), or c += ..., out of panels that are made on the way, for k > 0; `bias` may be
/// null. Sums are chains over k that are cut at fixed places, so that a row's result depends on that row alone: not on
/// how many others there are, nor on the number of threads.
void panel_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape);

/// The same of bfloat16, with sums in float32; Out is float or bfloat16. Needs has_avx512_bfloat16().
template <class Out>
void panel_matmul(const bfloat16* a, const bfloat16* b, const float* bias, Out* c, const MatmulShape& shape);

}  // namespace attune::cpu

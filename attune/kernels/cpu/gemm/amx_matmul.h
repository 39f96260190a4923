#pragma once

#include "attune/kernels/cpu/gemm/matmul_shape.h"
#include "attune/tensor/dtype.h"

namespace attune::cpu {

/// c = activation(a b + bias), or c += that if shape.accumulate. Multiplies bfloat16 in tiles of AMX, with sums in
/// float32. Out is float or bfloat16; `bias` may be null; k > 0. The terms of a sum have the same order whatever the
/// number of threads. Needs has_amx_bfloat16().
template <class Out>
void amx_matmul(const bfloat16* a, const bfloat16* b, const float* bias, Out* c, const MatmulShape& shape);

}  // namespace attune::cpu

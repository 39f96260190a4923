#pragma once
// Matrix products of oneDNN, on the threads of this process. A build without oneDNN has none
// (onednn_matmul_missing.cpp).

#include "attune/kernels/cpu/gemm/matmul_shape.h"

namespace attune::cpu {

/// Whether products of float32 are oneDNN's: with AVX-512. A row's result may not depend on other rows, and in oneDNN's
/// products for AVX2 it does.
bool has_onednn_float32();
/// Whether products may use AVX512-BF16: true unless ONEDNN_MAX_CPU_ISA is set to less. Our own products of bfloat16
/// obey it, too.
bool onednn_allows_bfloat16();
/// The same for AMX.
bool onednn_allows_amx();

/// c = activation(a b + bias), or c += that if shape.accumulate; `bias` may be null. All sizes are at least 1. oneDNN
/// works with one thread on pieces of rows that depend on the shape alone, so the result does not depend on the number
/// of threads.
void onednn_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape);

}  // namespace attune::cpu

#pragma once
// Matrix products of oneDNN, on the threads of this process. A build without oneDNN has none
// (onednn_matmul_missing.cpp).

#include "attune/kernels/cpu/gemm/matmul_shape.h"

namespace attune::cpu {

/// Of a and b, and of c; the bias is float32.
enum class ProductTypes { float32, bfloat16, bfloat16_to_float32 };

/// Whether a row's result does not depend on other rows. oneDNN keeps that with AVX-512; its products for AVX2 do not.
bool has_onednn_float32();
/// Whether there are instructions for them; oneDNN would form the others one number at a time.
bool has_onednn_bfloat16();

/// c = activation(a b + bias), or c += of it, as `shape` says; `bias` may be null. All sizes are at least 1. oneDNN
/// works with one thread on pieces of rows that depend on the shape alone, so the result does not depend on the number
/// of threads.
void onednn_matmul(ProductTypes types, const void* a, const void* b, const float* bias, void* c,
                   const MatmulShape& shape);

}  // namespace attune::cpu

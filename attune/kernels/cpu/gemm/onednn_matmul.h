#pragma once
// Matrix products of oneDNN, on the threads of this process. A build without oneDNN has none
// (onednn_matmul_missing.cpp).

#include "attune/kernels/cpu/gemm/matmul_shape.h"

namespace attune::cpu {

/// Of a and b, and of c; the bias is float32.
enum class ProductTypes { float32, bfloat16, bfloat16_to_float32 };

/// Whether products of float32 are oneDNN's: with AVX-512. A row's result may not depend on other rows, and in oneDNN's
/// products for AVX2 it does.
bool has_onednn_float32();
/// Whether products of bfloat16 are oneDNN's: where the processor has instructions for them. Without, oneDNN would form
/// one number at a time.
bool has_onednn_bfloat16();
/// Whether products may use AMX: unless ONEDNN_MAX_CPU_ISA is set to less, which then holds for our own products, too.
bool onednn_allows_amx();

/// c = activation(a b + bias), or c += of it, as `shape` says; `bias` may be null. All sizes are at least 1. oneDNN
/// works with one thread on pieces of rows that depend on the shape alone, so the result does not depend on the number
/// of threads.
void onednn_matmul(ProductTypes types, const void* a, const void* b, const float* bias, void* c,
                   const MatmulShape& shape);

}  // namespace attune::cpu

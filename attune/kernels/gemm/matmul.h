#pragma once
// Matrix products. On the CPU those of float32 are oneDNN's, or kernels/cpu/gemm/panel_matmul.h with a large
// vocabulary, on processors without AVX-512 and in builds without oneDNN; those of bfloat16 are amx_matmul.h where
// there is AMX, else panel_matmul.h; float64, which only gradient checks use, is a plain loop.

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune {

struct MatmulForm {
  bool transpose_a = false;  // a is stored as [k, m]
  bool transpose_b = false;  // b is stored as [n, k]
  bool accumulate = false;   // c += the product; only without activation
  Activation activation = Activation::none;
};

/// c [m, n] = activation(op(a) [m, k] op(b) [k, n] + bias [n]); the bias may be undefined. In a and c all dimensions
/// but the last count the rows. All are float32; or all are float64; or a and b are bfloat16, the bias is float32, c is
/// either, and sums are in float32 (see has_bfloat16_products()).
void matmul(Cpu, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form);
void matmul(Plain, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form);
void matmul(Cuda, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form);

/// Calls f(In{}, Out{}, Bias{}) with the types of a product's inputs, of its result and of its bias.
template <class F>
void with_product_types(DType in, DType out, F&& f) {
  if (in != DType::bf16) return dispatch_floating("matmul", in, [&]<class T>(T) { f(T{}, T{}, T{}); });
  if (out == DType::bf16) return f(bfloat16{}, bfloat16{}, float{});
  f(bfloat16{}, float{}, float{});
}

/// Whether the processor has instructions that multiply bfloat16 numbers. If not, such products are computed in float32
/// from the same rounded numbers: correct, but no faster.
bool has_bfloat16_products();

/// Whether products are formed in vectors of 512 bits (AVX-512), about twice as fast as with smaller ones.
bool has_avx512_products();

/// Floating-point operations of all matrix products of this process so far (2 m n k each), for measurements.
int64_t matmul_flops();

}  // namespace attune

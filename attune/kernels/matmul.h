#pragma once
// Matrix products of the devices. On the CPU they are oneDNN's `matmul` primitive, in float32 without AVX-512
// panel_matmul(); float64, which only gradient checks
// use, is a plain blocked loop.

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace [[gnu::visibility("default")]] attune {

/// c [m, n] = activation(op(a) [m, k] op(b) [k, n] + bias [n]), or c += when `accumulate` (then without activation).
/// a is stored as [m, k], with `transpose_a` as [k, m]; b as [k, n], with `transpose_b` as [n, k]; all row-major.
struct MatmulShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  Activation activation = Activation::none;
};

/// `bias` may be null.
void matmul(Cpu, const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape);
void matmul(Cpu, const double* a, const double* b, const double* bias, double* c, const MatmulShape& shape);
/// Sums in float32; see has_bfloat16_products().
void matmul(Cpu, const bfloat16* a, const bfloat16* b, const float* bias, float* c, const MatmulShape& shape);
void matmul(Cpu, const bfloat16* a, const bfloat16* b, const float* bias, bfloat16* c, const MatmulShape& shape);

/// Whether the processor multiplies bfloat16 numbers. Where it does not, products of them are formed in float32 from
/// the same rounded numbers: right, but no faster.
bool has_bfloat16_products();

/// Floating-point operations of all matrix products of this process so far (2 m n k each); for measuring.
int64_t matmul_flops();

}  // namespace attune

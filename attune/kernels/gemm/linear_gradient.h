#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// The backward pass of activation and bias after a matrix product, in one pass:
///   dz = scale * dy * activation'(saved)      d_bias = the sums of the columns of dz
/// All have `columns` columns. dy, dz and d_bias are float32; or all are float64; or dz is bfloat16, d_bias float32 and
/// dy either of the two. If dz is undefined, its type counts as that of dy.
struct LinearGradient {
  Tensor dy;          // [..., columns]
  Tensor saved = {};  // like dz, see activation_backward(); undefined if the activation is none
  Activation activation = Activation::none;
  double scale = 1;    // of dropout after a ReLU; the result is 0 where an element was dropped
  Tensor dz = {};      // shaped like dy, and may be dy; undefined: not wanted
  Tensor d_bias = {};  // [columns], or undefined
};

void linear_gradient(Cpu, const LinearGradient& arguments);
void linear_gradient(Plain, const LinearGradient& arguments);
void linear_gradient(Cuda, const LinearGradient& arguments);

/// Calls f(T{}, Dy{}, Dz{}) with the types of the sums, of dy and of dz.
template <class F>
void with_gradient_types(const LinearGradient& arguments, F&& f) {
  const DType dy = arguments.dy.dtype(), dz = arguments.dz.defined() ? arguments.dz.dtype() : dy;
  if (dz != DType::bf16) return dispatch_floating("linear", dz, [&]<class T>(T) { f(T{}, T{}, T{}); });
  if (dy == DType::bf16) return f(float{}, bfloat16{}, bfloat16{});
  f(float{}, float{}, bfloat16{});
}

}  // namespace attune

#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// On its way back into a product the gradient of its result, scale * dy, goes through the slope of the activation, and
/// is summed up for the bias, in one pass:
///   dz = scale * dy * activation'(saved)      d_bias = the sums of the columns of dz
/// All have `columns` columns. dy, dz and d_bias are float32; or float64; or bfloat16 dz and float32 d_bias of a dy
/// that is float32 or bfloat16. Where dz is not wanted its type counts as that of dy.
struct LinearGradient {
  Tensor dy;          // [..., columns]
  Tensor saved = {};  // like dz, as activation_backward() has it; undefined where the activation is none
  Activation activation = Activation::none;
  double scale = 1;    // of dropout behind a ReLU, whose result says what was dropped
  Tensor dz = {};      // like dy, and may be dy; undefined: not wanted
  Tensor d_bias = {};  // [columns], or undefined
};

void linear_gradient(Cpu, const LinearGradient& arguments);
void linear_gradient(Plain, const LinearGradient& arguments);

/// f(T{}, Dy{}, Dz{}) with the types of a gradient: T is what its sums are formed in.
template <class F>
void with_gradient_types(const LinearGradient& arguments, F&& f) {
  const DType dy = arguments.dy.dtype(), dz = arguments.dz.defined() ? arguments.dz.dtype() : dy;
  if (dz != DType::bf16) return dispatch_floating("linear", dz, [&]<class T>(T) { f(T{}, T{}, T{}); });
  if (dy == DType::bf16) return f(float{}, bfloat16{}, bfloat16{});
  f(float{}, float{}, bfloat16{});
}

}  // namespace attune

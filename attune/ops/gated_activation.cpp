#include "attune/ops/gated_activation.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gated_activation.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor gated_activation(const Tensor& x, Activation activation) {
  constexpr const char* op = "gated_activation";
  const ProfileScope scope(op);
  const Rows size = rows_of(op, x);
  if (size.columns % 2 != 0)
    fail<ShapeError>("{}: input {} has {} columns, which are not two halves", op, x.shape().text(), size.columns);
  Tensor y = Tensor::empty(shape_with_columns(x, size.columns / 2), {x.dtype(), x.device()});
  dispatch(x.device(), [&](auto device) { gated_activation_forward(device, activation, x, y); });
  if (!is_recording({x})) return y;
  record(op, {x}, y, [activation, x = x.detach()](const Tensor& gradient) {
    const Tensor dy = x.dtype() == DType::bf16 ? to_bfloat16(gradient) : gradient;
    Tensor dx = Tensor::empty_like(x);
    dispatch(dy.device(), [&](auto device) { gated_activation_backward(device, activation, x, dy, dx); });
    return Gradients{dx};
  });
  return y;
}

}  // namespace attune

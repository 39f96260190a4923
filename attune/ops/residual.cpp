#include "attune/ops/residual.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/kernels/dropout.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

// With an active mask the gradient has the dtype of y, so that a product need not convert it. Else it is dy itself.
Tensor gradient_of_addend(const Tensor& dy, const DropoutMask& mask, DType type) {
  if (type != DType::bf16 || dy.dtype() == DType::bf16 || !mask.active()) return dropout(dy, mask);
  const Tensor d_addend = Tensor::empty(dy.shape(), {type, dy.device()});
  dispatch(dy.device(), [&](auto device) { dropout_rows(device, {}, dy, d_addend, mask); });
  return d_addend;
}

}  // namespace

Tensor residual_dropout(const Tensor& x, const Tensor& y, const DropoutMask& mask) {
  const ProfileScope scope("residual_dropout");
  check_rows("residual_dropout", x);
  check_addend("residual_dropout", x, y);
  check_dropout("residual_dropout", mask);
  Tensor sum = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) { dropout_rows(device, x, y, sum, mask); });
  record("residual_dropout", {x, y}, sum, [mask, type = y.dtype(), needs_y = requires_gradient(y)](const Tensor& dy) {
    return Gradients{dy, needs_y ? gradient_of_addend(dy, mask, type) : Tensor{}};
  });
  return sum;
}

}  // namespace attune

#include "attune/ops/gather.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gather.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor gather(const Tensor& x, const Indices& rows) {
  const ProfileScope scope("gather");
  if (x.rank() != 2) fail<ShapeError>("gather: needs a matrix, found {}", x.shape().text());
  if (!is_floating(x.dtype())) refuse_dtype("gather", x.dtype());
  for (const int32_t row : rows.values()) {
    if (row < -1 || row >= x.size(0)) fail<ShapeError>("gather: row {} of {}", row, x.shape().text());
  }
  Tensor y = Tensor::empty({rows.size(), x.size(1)}, {x.dtype(), x.device()});
  dispatch(x.device(), [&](auto device) { gather_forward(device, x, rows.on(device), y); });
  record("gather", {x}, y, [rows, shape = x.shape()](const Tensor& dy) {
    Tensor dx = Tensor::empty(shape, {dy.dtype(), dy.device()});
    dispatch(dy.device(), [&](auto device) { gather_backward(device, dy, rows, dx); });
    return Gradients{dx};
  });
  return y;
}

}  // namespace attune

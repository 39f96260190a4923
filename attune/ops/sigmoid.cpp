#include "attune/ops/sigmoid.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/kernels/sigmoid.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor sigmoid(const Tensor& x) {
  const ProfileScope scope("sigmoid");
  check_rows("sigmoid", x);
  Tensor y = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) { sigmoid_forward(device, x, y); });
  record("sigmoid", {x}, y, [y = y.detach()](const Tensor& dy) {  // detached: y owns this closure
    Tensor dx = Tensor::empty_like(y);
    dispatch(y.device(), [&](auto device) { sigmoid_backward(device, y, dy, dx); });
    return Gradients{dx};
  });
  return y;
}

}  // namespace attune

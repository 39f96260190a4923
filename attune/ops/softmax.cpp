#include "attune/ops/softmax.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/kernels/softmax.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

Tensor apply(const char* op, SoftmaxKind kind, const Tensor& x) {
  const ProfileScope scope(op);
  check_rows(op, x);
  Tensor y = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) { softmax_forward(device, kind, x, y); });
  record(op, {x}, y, [kind, y = y.detach()](const Tensor& dy) {
    Tensor dx = Tensor::empty_like(y);
    dispatch(y.device(), [&](auto device) { softmax_backward(device, kind, y, dy, dx); });
    return Gradients{dx};
  });
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x) {
  return apply("softmax", SoftmaxKind::probabilities, x);
}
Tensor log_softmax(const Tensor& x) {
  return apply("log_softmax", SoftmaxKind::logarithms, x);
}

}  // namespace attune

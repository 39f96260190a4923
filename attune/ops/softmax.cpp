#include "attune/ops/softmax.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/kernels/softmax.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

Tensor apply(const char* op, SoftmaxKind kind, const Tensor& x) {
  const ProfileScope scope(op);
  const Rows size = rows_of(op, x);
  Tensor y = Tensor::empty_like(x);
  dispatch_floating(op, x.dtype(), [&]<class T>(T) {
    dispatch(x.device(),
             [&](auto device) { softmax_forward(device, kind, x.data<T>(), y.data<T>(), size.rows, size.columns); });
  });
  record(op, {x}, y, [op, kind, size, y = y.detach()](const Tensor& dy) {
    Tensor dx = Tensor::empty_like(y);
    dispatch_floating(op, y.dtype(), [&]<class T>(T) {
      dispatch(y.device(), [&](auto device) {
        softmax_backward(device, kind, y.template data<T>(), dy.data<T>(), dx.data<T>(), size.rows, size.columns);
      });
    });
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

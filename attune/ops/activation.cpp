#include "attune/ops/activation.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/activation.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

Tensor activate(const char* op, Activation kind, const Tensor& x) {
  const ProfileScope scope(op);
  if (!x.defined()) fail<ShapeError>("{}: the input is undefined", op);
  if (!is_floating(x.dtype())) refuse_dtype(op, x.dtype());
  Tensor y = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) { activation_forward(device, kind, x, y); });
  if (!is_recording({x})) return y;
  const Tensor saved = kind == Activation::relu ? y.detach() : x.detach();
  record(op, {x}, y, [kind, saved](const Tensor& dy) {
    Tensor dx = Tensor::empty_like(saved);
    dispatch(dy.device(), [&](auto device) { activation_backward(device, kind, saved, dy, dx); });
    return Gradients{dx};
  });
  return y;
}

}  // namespace

Tensor activated(const Tensor& x, Activation activation) {
  return activation == Activation::none ? x : activate("activation", activation, x);
}

Tensor relu(const Tensor& x) {
  return activate("relu", Activation::relu, x);
}
Tensor gelu(const Tensor& x) {
  return activate("gelu", Activation::gelu, x);
}
Tensor gelu_tanh(const Tensor& x) {
  return activate("gelu_tanh", Activation::gelu_tanh, x);
}
Tensor gelu_sigmoid(const Tensor& x) {
  return activate("gelu_sigmoid", Activation::gelu_sigmoid, x);
}
Tensor silu(const Tensor& x) {
  return activate("silu", Activation::silu, x);
}

Tensor tanh(const Tensor& x) {
  return activate("tanh", Activation::tanh, x);
}

}  // namespace attune

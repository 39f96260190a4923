#include "attune/ops/activation.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/activation.h"

namespace attune {
namespace {

Tensor activate(const char* op, Activation kind, const Tensor& x) {
  const ProfileScope scope(op);
  if (!x.defined()) fail<ShapeError>("{}: the input is undefined", op);
  Tensor y = Tensor::empty_like(x);
  dispatch_floating(op, x.dtype(), [&]<class T>(T) {
    dispatch(x.device(), [&](auto device) { activation_forward(device, kind, x.data<T>(), y.data<T>(), x.numel()); });
  });
  if (!is_recording({x})) return y;
  const Tensor saved = kind == Activation::relu ? y.detach() : x.detach();
  record(op, {x}, y, [op, kind, saved](const Tensor& dy) {
    Tensor dx = Tensor::empty_like(saved);
    dispatch_floating(op, dy.dtype(), [&]<class T>(T) {
      dispatch(dy.device(), [&](auto device) {
        activation_backward(device, kind, saved.data<T>(), dy.data<T>(), dx.data<T>(), dy.numel());
      });
    });
    return Gradients{dx};
  });
  return y;
}

}  // namespace

Tensor relu(const Tensor& x) {
  return activate("relu", Activation::relu, x);
}
Tensor gelu(const Tensor& x) {
  return activate("gelu", Activation::gelu, x);
}
Tensor gelu_tanh(const Tensor& x) {
  return activate("gelu_tanh", Activation::gelu_tanh, x);
}
Tensor silu(const Tensor& x) {
  return activate("silu", Activation::silu, x);
}

Tensor tanh(const Tensor& x) {
  return activate("tanh", Activation::tanh, x);
}

}  // namespace attune

#include "attune/ops/linear.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/ops/activation_kernel.h"
#include "attune/ops/column_sums_kernel.h"

namespace attune {
namespace {

struct LinearSizes {
  int64_t rows;
  int64_t in;
  int64_t out;
};

LinearSizes check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.rank() < 1 || weight.rank() != 2)
    fail<ShapeError>("linear: needs an input and a weight matrix, found {} and {}", x.shape().text(),
                     weight.shape().text());
  if (x.size(-1) != weight.size(1))
    fail<ShapeError>("linear: input {} has {} columns but weight {} takes {}", x.shape().text(), x.size(-1),
                     weight.shape().text(), weight.size(1));
  if (bias.defined() && (bias.rank() != 1 || bias.size(0) != weight.size(0)))
    fail<ShapeError>("linear: weight {} gives {} columns but bias has shape {}", weight.shape().text(), weight.size(0),
                     bias.shape().text());
  if (x.dtype() != weight.dtype())
    fail<ShapeError>("linear: input is {}, weight {}", name_of(x.dtype()), name_of(weight.dtype()));
  int64_t rows = 1;
  for (int dim = 0; dim + 1 < x.rank(); ++dim) rows *= x.size(dim);
  return {rows, weight.size(1), weight.size(0)};
}

Tensor forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearSizes& sizes,
               FusedActivation activation) {
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() = sizes.out;
  Tensor y = Tensor::empty(Shape{std::span<const int64_t>(shape)}, {x.dtype(), x.device()});
  dispatch_floating("linear", x.dtype(), [&]<class T>(T) {
    dispatch(x.device(), [&](auto device) {
      matmul(device, x.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr, y.data<T>(),
             {.m = sizes.rows, .n = sizes.out, .k = sizes.in, .transpose_b = true, .activation = activation});
    });
  });
  return y;
}

ActivationKind kind_of(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::gelu:
      return ActivationKind::gelu;
    case FusedActivation::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case FusedActivation::silu:
      return ActivationKind::silu;
    case FusedActivation::tanh:
      return ActivationKind::tanh;
    case FusedActivation::none:
    case FusedActivation::relu:
      break;
  }
  return ActivationKind::relu;
}

struct LinearTape {
  Tensor x, weight;
  Tensor activation_input;  // relu: the output itself, whose sign says the same; else the value before it
  LinearSizes sizes;
  FusedActivation activation;
  bool needs_x, needs_weight, needs_bias;
};

Gradients backward(const LinearTape& tape, const Tensor& dy) {
  Gradients gradients(3);
  dispatch_floating("linear", dy.dtype(), [&]<class T>(T) {
    dispatch(dy.device(), [&](auto device) {
      const auto& [rows, in, out] = tape.sizes;
      Tensor dz = dy;
      if (tape.activation != FusedActivation::none) {
        dz = Tensor::empty_like(dy);
        activation_backward(device, kind_of(tape.activation), tape.activation_input.template data<T>(), dy.data<T>(),
                            dz.data<T>(), rows * out);
      }
      if (tape.needs_x) {
        gradients[0] = Tensor::empty_like(tape.x);
        matmul(device, dz.data<T>(), tape.weight.template data<T>(), static_cast<const T*>(nullptr),
               gradients[0].data<T>(), {.m = rows, .n = in, .k = out});
      }
      if (tape.needs_weight) {
        gradients[1] = Tensor::empty_like(tape.weight);
        matmul(device, dz.data<T>(), tape.x.template data<T>(), static_cast<const T*>(nullptr), gradients[1].data<T>(),
               {.m = out, .n = in, .k = rows, .transpose_a = true});
      }
      if (tape.needs_bias) {
        gradients[2] = Tensor::empty({out}, {dy.dtype(), dy.device()});
        column_sums(device, dz.data<T>(), rows, out, gradients[2].data<T>(), false);
      }
    });
  });
  return gradients;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, FusedActivation activation) {
  const ProfileScope scope("linear");
  const LinearSizes sizes = check(x, weight, bias);
  const bool recording = is_recording({x, weight, bias});
  // The gradients of all but ReLU need the value before them, so that a step that is recorded applies them in a pass of
  // their own.
  const bool separate = recording && activation != FusedActivation::none && activation != FusedActivation::relu;
  Tensor y = forward(x, weight, bias, sizes, separate ? FusedActivation::none : activation);
  if (!recording) return y;

  LinearTape tape{.x = x.detach(),
                  .weight = weight.detach(),
                  .activation_input = {},
                  .sizes = sizes,
                  .activation = activation,
                  .needs_x = requires_gradient(x),
                  .needs_weight = requires_gradient(weight),
                  .needs_bias = requires_gradient(bias)};
  if (separate) {
    tape.activation_input = y;
    y = Tensor::empty_like(y);
    dispatch_floating("linear", x.dtype(), [&]<class T>(T) {
      dispatch(x.device(), [&](auto device) {
        activation_forward(device, kind_of(activation), tape.activation_input.data<T>(), y.data<T>(), y.numel());
      });
    });
  } else if (activation == FusedActivation::relu) {
    tape.activation_input = y.detach();
  }
  record("linear", {x, weight, bias}, y, [tape = std::move(tape)](const Tensor& dy) { return backward(tape, dy); });
  return y;
}

}  // namespace attune

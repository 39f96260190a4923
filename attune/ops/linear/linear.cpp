#include "attune/ops/linear/linear.h"

#include <algorithm>
#include <array>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/activation.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/gemm/linear_gradient.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/ops/linear/linear_check.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

// A tensor for the product of x and a weight.
Tensor empty_product(const Tensor& x, const Tensor& weight, DType type) {
  return Tensor::empty(shape_with_columns(x, weight.size(0)), {type, x.device()});
}

constexpr size_t kMostSideBySide = 3;

struct LinearTape {
  Tensor x, weight;                          // as the product read them
  std::vector<LinearParameters> again = {};  // quantised ones, of which the backward pass makes the weight again
  Tensor activation_input;  // relu: the result, which has the same sign; else the input of the activation
  Activation activation;
  DropoutMask dropout;
  DType x_type;  // of the input, and so of its gradient
  bool needs_x, needs_weight, needs_bias;
};

// The gradient of the activation's input, in the type of the products, and the gradient of the bias.
struct OutputGradients {
  Tensor dz, d_bias;
};

OutputGradients output_gradients(const LinearTape& tape, Tensor dy) {
  const bool with_activation = tape.activation != Activation::none;
  const bool relu = tape.activation == Activation::relu;
  if (tape.dropout.active() && !relu) dy = dropout(dy, tape.dropout);
  const DType type = tape.x.dtype();
  if (with_activation && type == DType::bf16) dy = to_bfloat16(dy);
  const bool changes = with_activation || dy.dtype() != type;
  OutputGradients result{.dz = dy, .d_bias = {}};
  if (changes) result.dz = Tensor::empty(dy.shape(), {type, dy.device()});
  if (tape.needs_bias) result.d_bias = Tensor::empty({dy.size(-1)}, {sum_type(type), dy.device()});
  if (!changes && !tape.needs_bias) return result;
  const LinearGradient arguments{.dy = dy,
                                 .saved = tape.activation_input,
                                 .activation = tape.activation,
                                 .scale = relu && tape.dropout.active() ? tape.dropout.scale() : 1,
                                 .dz = changes ? result.dz : Tensor{},
                                 .d_bias = result.d_bias};
  dispatch(dy.device(), [&](auto device) { linear_gradient(device, arguments); });
  return result;
}

bool is_quantised(std::span<const LinearParameters> parameters) {
  return std::ranges::any_of(parameters, [](const LinearParameters& p) { return p.quantised != nullptr; });
}

// The weights of up to kMostSideBySide parameters as one tensor, as the product reads it. Copies in bfloat16 of float32
// weights are kept, but not of what is widened for one product.
Tensor stacked_weights(const Tensor& x, std::span<const LinearParameters> parameters, bool bf16) {
  std::array<Tensor, kMostSideBySide> weights;
  const DType products = bf16 ? DType::bf16 : x.dtype();
  std::ranges::transform(parameters, weights.begin(),
                         [&](const LinearParameters& p) { return p.quantised ? weight_of(p, products) : p.weight; });
  const auto all = std::span(weights).first(parameters.size());
  return bf16 && !is_quantised(parameters) ? stacked_in_bfloat16(all) : stacked(all, products);
}

// Leaves the backward pass what it needs to make the weight again.
void forget_widened(LinearTape& tape, std::span<const LinearParameters> parameters) {
  if (!is_quantised(parameters)) return;
  for (const LinearParameters& p : parameters)
    tape.again.push_back(
        {.weight = p.weight.defined() ? p.weight.detach() : Tensor{}, .bias = {}, .quantised = p.quantised});
  tape.weight = {};
}

Gradients backward(const LinearTape& tape, const Tensor& dy) {
  const auto [dz, d_bias] = output_gradients(tape, dy);
  Gradients gradients{{}, {}, d_bias};
  if (tape.needs_x) gradients[0] = Tensor::empty(tape.x.shape(), {tape.x_type, dz.device()});
  if (tape.needs_weight)
    gradients[1] = Tensor::empty({dz.size(-1), tape.x.size(-1)}, {sum_type(dz.dtype()), dz.device()});
  const bool widens = tape.needs_x && !tape.again.empty();
  const Tensor weight = widens ? stacked_weights(tape.x, tape.again, tape.x.dtype() == DType::bf16) : tape.weight;
  dispatch(dz.device(), [&, dz = dz](auto device) {
    if (tape.needs_x) matmul(device, dz, weight, {}, gradients[0], {});
    if (tape.needs_weight) matmul(device, dz, tape.x, {}, gradients[1], {.transpose_a = true});
  });
  return gradients;
}

// Up to kMostSideBySide parameters as one tensor, and their sizes.
struct Stack {
  std::array<Tensor, kMostSideBySide> weights, biases;
  std::array<int64_t, kMostSideBySide> sizes{};
  size_t count = 0;
  Tensor weight, bias;  // of the product
};

Stack stack_of(const Tensor& x, std::span<const LinearParameters> parameters) {
  if (parameters.empty() || parameters.size() > kMostSideBySide)
    fail<ShapeError>("fused_linear: takes 1 to {} weights, found {}", kMostSideBySide, parameters.size());
  Stack stack;
  for (const LinearParameters& p : parameters) {
    check_linear(x, p);
    if (p.bias.defined() != parameters[0].bias.defined())
      fail<ShapeError>("fused_linear: either every weight has a bias or none has");
    stack.weights[stack.count] = p.weight;
    stack.biases[stack.count] = p.bias;
    stack.sizes[stack.count++] = p.quantised ? p.quantised->out() : p.weight.size(0);
  }
  stack.weight = stacked_weights(x, parameters, takes_bfloat16(x));
  if (const Tensor& first = parameters[0].bias; first.defined())
    stack.bias = stacked(std::span(stack.biases).first(stack.count), first.dtype());
  return stack;
}

// The gradients of the parts: rows of the gradient of the stacked tensor.
void split_rows(const Tensor& gradient, const std::array<int64_t, kMostSideBySide>& sizes, size_t first,
                Gradients& parts) {
  int64_t row = 0;
  for (size_t i = 0; gradient.defined() && i < kMostSideBySide; ++i) {
    if (sizes[i] > 0) parts[first + i] = gradient.rows(row, row + sizes[i]);
    row += sizes[i];
  }
}

}  // namespace

Tensor weight_of(const LinearParameters& parameters, DType products) {
  if (!parameters.quantised) return products == DType::f32 ? for_sums(parameters.weight) : parameters.weight;
  const Tensor matrix = parameters.quantised->to_matrix();
  return products == DType::f64 ? matrix.to(DType::f64) : matrix;
}

Tensor linear(const Tensor& x, const LinearParameters& parameters, const LinearOptions& options) {
  const ProfileScope scope("linear");
  check_linear(x, parameters);
  check_dropout("linear", options.dropout);
  const Tensor& weight = parameters.weight;
  const Tensor& bias = parameters.bias;
  const bool bf16 = takes_bfloat16(x);
  const bool recording = is_recording({x, weight, bias});
  const Activation activation = options.activation;
  // The gradient of every activation but ReLU needs the activation's input, so that the activation is a separate pass
  // while gradients are wanted. A library's epilogue may round in another way: with and without checkpoints, and where
  // only some of the inputs require a gradient, it has to be the same pass. In bfloat16 it always is.
  const bool relu = activation == Activation::relu, plain = activation == Activation::none;
  const bool for_training = execution().recording || execution().will_repeat;
  const bool separate = (for_training || bf16) && !plain && !relu;
  LinearTape tape{.x = bf16 ? to_bfloat16(x) : x.detach(),
                  .weight = stacked_weights(x, {&parameters, 1}, bf16),
                  .activation_input = {},
                  .activation = activation,
                  .dropout = options.dropout,
                  .x_type = x.dtype(),
                  .needs_x = requires_gradient(x),
                  .needs_weight = requires_gradient(weight),
                  .needs_bias = requires_gradient(bias)};
  const DType wanted = !bf16 ? x.dtype() : options.bf16_output ? DType::bf16 : DType::f32;
  const DType type = bf16 && !plain ? DType::bf16 : wanted;  // activations are kept in bfloat16, as inputs are
  Tensor y = empty_product(x, tape.weight, type);
  if (separate) tape.activation_input = Tensor::empty_like(y);
  dispatch(x.device(), [&](auto device) {
    matmul(device, tape.x, tape.weight, bias, separate ? tape.activation_input : y,
           {.transpose_b = true, .activation = separate ? Activation::none : activation});
    if (separate) activation_forward(device, activation, tape.activation_input, y);
    if (options.dropout.active()) dropout_rows(device, {}, y, y, options.dropout);
  });
  if (relu) tape.activation_input = y.detach();
  if (y.dtype() != wanted) y = to_float32(y);
  if (!recording) return y;
  forget_widened(tape, {&parameters, 1});
  record("linear", {x, weight, bias}, y, [tape = std::move(tape)](const Tensor& dy) { return backward(tape, dy); });
  return y;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  return linear(x, LinearParameters{.weight = weight, .bias = bias}, options);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  return linear(x, weight, bias, LinearOptions{.activation = activation});
}

Tensor fused_linear(const Tensor& x, std::span<const LinearParameters> parameters, bool bf16_output) {
  const ProfileScope scope("linear");
  const Stack stack = stack_of(x, parameters);
  const bool bf16 = stack.weight.dtype() == DType::bf16;
  LinearTape tape{.x = bf16 ? to_bfloat16(x) : x.detach(),
                  .weight = stack.weight,
                  .activation_input = {},
                  .activation = Activation::none,
                  .dropout = {},
                  .x_type = x.dtype(),
                  .needs_x = requires_gradient(x),
                  .needs_weight = std::ranges::any_of(stack.weights, requires_gradient),
                  .needs_bias = std::ranges::any_of(stack.biases, requires_gradient)};
  Tensor y = empty_product(x, tape.weight, !bf16 ? x.dtype() : bf16_output ? DType::bf16 : DType::f32);
  dispatch(x.device(), [&](auto device) { matmul(device, tape.x, tape.weight, stack.bias, y, {.transpose_b = true}); });
  forget_widened(tape, parameters);
  const auto& [w_0, w_1, w_2] = stack.weights;
  const auto& [b_0, b_1, b_2] = stack.biases;
  record("linear", {x, w_0, w_1, w_2, b_0, b_1, b_2}, y,
         [tape = std::move(tape), sizes = stack.sizes](const Tensor& dy) {
           const Gradients of_stack = backward(tape, dy);
           Gradients gradients(1 + 2 * kMostSideBySide);
           gradients[0] = of_stack[0];
           split_rows(of_stack[1], sizes, 1, gradients);
           split_rows(of_stack[2], sizes, 1 + kMostSideBySide, gradients);
           return gradients;
         });
  return y;
}

}  // namespace attune

#include "attune/ops/linear.h"

#include <algorithm>
#include <array>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/activation.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/linear_gradient.h"
#include "attune/ops/precision.h"

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
  if (x.dtype() != weight.dtype() && !(x.dtype() == DType::bf16 && weight.dtype() == DType::f32))
    fail<ShapeError>("linear: input is {}, weight {}", name_of(x.dtype()), name_of(weight.dtype()));
  int64_t rows = 1;
  for (int dim = 0; dim + 1 < x.rank(); ++dim) rows *= x.size(dim);
  return {rows, weight.size(1), weight.size(0)};
}

template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

// f(In{}, Out{}, Bias{}) with the types of a product's inputs, of its result and of its bias.
template <class F>
void with_product_types(DType in, DType out, F&& f) {
  if (in != DType::bf16) return dispatch_floating("linear", in, [&]<class T>(T) { f(T{}, T{}, T{}); });
  if (out == DType::bf16) return f(bfloat16{}, bfloat16{}, float{});
  f(bfloat16{}, float{}, float{});
}

// activation(x weight^T + bias) in `type`; x and weight are of one type.
Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation, DType type) {
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() = weight.size(0);
  Tensor y = Tensor::empty(Shape{std::span<const int64_t>(shape)}, {type, x.device()});
  const int64_t rows = weight.size(0) == 0 ? 0 : y.numel() / weight.size(0);
  with_product_types(x.dtype(), type, [&]<class In, class Out, class Bias>(In, Out, Bias) {
    dispatch(x.device(), [&](auto device) {
      matmul(device, x.data<In>(), weight.data<In>(), static_cast<const Bias*>(data_or_null<Bias>(bias)), y.data<Out>(),
             {.m = rows, .n = weight.size(0), .k = weight.size(1), .transpose_b = true, .activation = activation});
    });
  });
  return y;
}

// f(T{}) with any type that lies between two products.
template <class F>
void with_storage(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(bfloat16{});
  dispatch_floating("linear", dtype, f);
}

Tensor activated(const Tensor& x, Activation activation) {
  Tensor y = Tensor::empty_like(x);
  with_storage(x.dtype(), [&]<class T>(T) {
    dispatch(x.device(),
             [&](auto device) { activation_forward(device, activation, x.data<T>(), y.data<T>(), y.numel()); });
  });
  return y;
}

void drop_in_place(const Tensor& y, int64_t columns, const DropoutMask& mask) {
  const int64_t rows = columns == 0 ? 0 : y.numel() / columns;
  dispatch(y.device(), [&](auto device) {
    if (y.dtype() == DType::bf16)
      return dropout_rows(device, y.data<bfloat16>(), y.data<bfloat16>(), rows, columns, mask);
    dispatch_floating("linear", y.dtype(), [&]<class T>(T) {
      dropout_rows(device, static_cast<const T*>(nullptr), y.data<T>(), y.data<T>(), rows, columns, mask);
    });
  });
}

struct LinearTape {
  Tensor x, weight;         // as they went into the product
  Tensor activation_input;  // relu: the result itself, whose sign says the same; else the value before the activation
  LinearSizes sizes;
  Activation activation;
  DropoutMask dropout;
  DType x_type;  // of the input, and so of its gradient
  bool needs_x, needs_weight, needs_bias;
};

// The gradient before the activation, in the type of the products, and that of the bias.
struct OutputGradients {
  Tensor dz, d_bias;
};

OutputGradients output_gradients(const LinearTape& tape, Tensor dy) {
  const bool with_activation = tape.activation != Activation::none;
  const bool relu = tape.activation == Activation::relu;
  if (tape.dropout.active() && !relu) dy = dropout(dy, tape.dropout);
  const DType type = tape.x.dtype();
  if (with_activation && type == DType::bf16) dy = to_bfloat16(dy);
  OutputGradients result{.dz = dy, .d_bias = {}};
  const bool changes = with_activation || dy.dtype() != type;
  if (changes) result.dz = Tensor::empty(dy.shape(), {type, dy.device()});
  if (tape.needs_bias)
    result.d_bias = Tensor::empty({tape.sizes.out}, {type == DType::bf16 ? DType::f32 : type, dy.device()});
  if (!changes && !tape.needs_bias) return result;
  const auto run = [&]<class T, class Dy, class Dz>(T, Dy, Dz) {
    const LinearGradient<T, Dy, Dz> arguments{
        .rows = tape.sizes.rows,
        .columns = tape.sizes.out,
        .dy = dy.data<Dy>(),
        .saved = with_activation ? tape.activation_input.template data<Dz>() : nullptr,
        .activation = tape.activation,
        .scale = relu && tape.dropout.active() ? tape.dropout.scale() : 1,
        .dz = changes ? result.dz.template data<Dz>() : nullptr,
        .d_bias = data_or_null<T>(result.d_bias)};
    dispatch(dy.device(), [&](auto device) { linear_gradient(device, arguments); });
  };
  if (type != DType::bf16) {
    dispatch_floating("linear", type, [&]<class T>(T) { run(T{}, T{}, T{}); });
  } else if (dy.dtype() == DType::bf16) {
    run(float{}, bfloat16{}, bfloat16{});
  } else {
    run(float{}, float{}, bfloat16{});
  }
  return result;
}

Gradients backward(const LinearTape& tape, const Tensor& dy) {
  const auto& [rows, in, out] = tape.sizes;
  const auto [dz, d_bias] = output_gradients(tape, dy);
  Gradients gradients{{}, {}, d_bias};
  const auto multiply = [&, dz = dz](const Tensor& other, const Tensor& to, const MatmulShape& shape) {
    with_product_types(dz.dtype(), to.dtype(), [&]<class In, class Out, class Bias>(In, Out, Bias) {
      dispatch(dz.device(), [&](auto device) {
        matmul(device, dz.data<In>(), other.data<In>(), static_cast<const Bias*>(nullptr), to.data<Out>(), shape);
      });
    });
  };
  if (tape.needs_x) {
    gradients[0] = Tensor::empty(tape.x.shape(), {tape.x_type, dz.device()});
    multiply(tape.weight, gradients[0], {.m = rows, .n = in, .k = out});
  }
  if (tape.needs_weight) {
    const DType type = dz.dtype() == DType::bf16 ? DType::f32 : dz.dtype();
    gradients[1] = Tensor::empty({out, in}, {type, dz.device()});
    multiply(tape.x, gradients[1], {.m = out, .n = in, .k = rows, .transpose_a = true});
  }
  return gradients;
}

constexpr size_t kMostSideBySide = 3;

// Up to kMostSideBySide parameters as one, and their sizes.
struct Stack {
  std::array<Tensor, kMostSideBySide> weights, biases;
  std::array<int64_t, kMostSideBySide> sizes{};
  size_t count = 0;
  Tensor weight, bias;  // of the product
};

// One tensor over all, in place where they lie so.
Tensor stacked(std::span<const Tensor> parts) {
  if (const Tensor joined = Tensor::joined(parts); joined.defined()) return joined;
  std::vector<int64_t> sizes(parts[0].shape().begin(), parts[0].shape().end());
  for (const Tensor& part : parts.subspan(1)) sizes[0] += part.size(0);
  const Tensor all = Tensor::empty(Shape{std::span<const int64_t>(sizes)}, {parts[0].dtype(), parts[0].device()});
  int64_t row = 0;
  for (const Tensor& part : parts) {
    all.rows(row, row + part.size(0)).copy_from(part);
    row += part.size(0);
  }
  return all;
}

// Whether the product of x with such a weight takes bfloat16.
bool takes_bfloat16(const Tensor& x, const Tensor& weight) {
  return x.dtype() == DType::bf16 || (bfloat16_products() && weight.dtype() == DType::f32);
}

Stack stack_of(const Tensor& x, std::span<const LinearParameters> parameters) {
  if (parameters.empty() || parameters.size() > kMostSideBySide)
    fail<ShapeError>("fused_linear: takes 1 to {} weights, found {}", kMostSideBySide, parameters.size());
  Stack stack;
  for (const auto& [weight, bias] : parameters) {
    check(x, weight, bias);
    if (bias.defined() != parameters[0].bias.defined())
      fail<ShapeError>("fused_linear: either every weight has a bias or none has");
    stack.weights[stack.count] = weight;
    stack.biases[stack.count] = bias;
    stack.sizes[stack.count++] = weight.size(0);
  }
  const auto weights = std::span(stack.weights).first(stack.count);
  stack.weight = takes_bfloat16(x, weights[0]) ? stacked_in_bfloat16(weights) : stacked(weights);
  if (parameters[0].bias.defined()) stack.bias = stacked(std::span(stack.biases).first(stack.count));
  return stack;
}

// The gradients of the parts, as rows of that of their stack.
void split_rows(const Tensor& gradient, const std::array<int64_t, kMostSideBySide>& sizes, size_t first,
                Gradients& parts) {
  int64_t row = 0;
  for (size_t i = 0; gradient.defined() && i < kMostSideBySide; ++i) {
    if (sizes[i] > 0) parts[first + i] = gradient.rows(row, row + sizes[i]);
    row += sizes[i];
  }
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options) {
  const ProfileScope scope("linear");
  const LinearSizes sizes = check(x, weight, bias);
  check_dropout("linear", options.dropout);
  const bool bf16 = takes_bfloat16(x, weight);
  const bool recording = is_recording({x, weight, bias});
  const Activation activation = options.activation;
  // The gradients of all but ReLU need the value before them, so that a step that is recorded applies them in a pass of
  // their own; bfloat16 always, so that what is formed again while gradients are is the same.
  const bool relu = activation == Activation::relu, plain = activation == Activation::none;
  const bool separate = (recording || bf16) && !plain && !relu;
  LinearTape tape{.x = bf16 ? to_bfloat16(x) : x.detach(),
                  .weight = bf16 ? stacked_in_bfloat16({&weight, 1}) : weight.detach(),
                  .activation_input = {},
                  .sizes = sizes,
                  .activation = activation,
                  .dropout = options.dropout,
                  .x_type = x.dtype(),
                  .needs_x = requires_gradient(x),
                  .needs_weight = requires_gradient(weight),
                  .needs_bias = requires_gradient(bias)};
  const DType wanted = !bf16 ? x.dtype() : options.bf16_output ? DType::bf16 : DType::f32;
  const DType type = bf16 && !plain ? DType::bf16 : wanted;  // activations are kept as bf16_output as inputs
  Tensor y = product(tape.x, tape.weight, bias, separate ? Activation::none : activation, type);
  if (separate) {
    tape.activation_input = y;
    y = activated(y, activation);
  }
  if (options.dropout.active()) drop_in_place(y, sizes.out, options.dropout);
  if (relu) tape.activation_input = y.detach();
  if (y.dtype() != wanted) y = to_float32(y);
  if (!recording) return y;
  record("linear", {x, weight, bias}, y, [tape = std::move(tape)](const Tensor& dy) { return backward(tape, dy); });
  return y;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  return linear(x, weight, bias, LinearOptions{.activation = activation});
}

Tensor fused_linear(const Tensor& x, std::span<const LinearParameters> parameters) {
  const ProfileScope scope("linear");
  const Stack stack = stack_of(x, parameters);
  LinearTape tape{.x = stack.weight.dtype() == DType::bf16 ? to_bfloat16(x) : x.detach(),
                  .weight = stack.weight,
                  .activation_input = {},
                  .sizes = {.rows = 0, .in = stack.weight.size(1), .out = stack.weight.size(0)},
                  .activation = Activation::none,
                  .dropout = {},
                  .x_type = x.dtype(),
                  .needs_x = requires_gradient(x),
                  .needs_weight = std::ranges::any_of(stack.weights, requires_gradient),
                  .needs_bias = std::ranges::any_of(stack.biases, requires_gradient)};
  tape.sizes.rows = check(x, stack.weights[0], stack.biases[0]).rows;
  Tensor y =
      product(tape.x, tape.weight, stack.bias, Activation::none, x.dtype() == DType::bf16 ? DType::f32 : x.dtype());
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

#include "attune/ops/layer_norm.h"

#include <array>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/layer_norm.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

struct Tape {
  Tensor normalised;  // x, or the sum of the residual connection
  Tensor statistics;  // [rows, 3]
  Tensor weight;
  DropoutMask mask;
  bool fused;  // with a residual connection
  bool centred;
  bool has_bias;
  DType dropped;  // type of the gradient of y
};

// dx, d_dropped (undefined unless fused with an active mask), d_weight, d_bias (undefined without a bias)
std::array<Tensor, 4> backward(const Tape& tape, const Tensor& dy) {
  const Tensor& x = tape.normalised;
  const Tensor dx = Tensor::empty_like(x);
  const bool dropped = tape.fused && tape.mask.active();
  const Tensor d_dropped = dropped ? Tensor::empty(x.shape(), {tape.dropped, x.device()}) : Tensor{};
  const Tensor d_weight = Tensor::empty_like(tape.weight);
  const Tensor d_bias = tape.has_bias ? Tensor::empty_like(tape.weight) : Tensor{};
  const LayerNormBackward arguments{.normalised = x,
                                    .statistics = tape.statistics,
                                    .weight = tape.weight,
                                    .dy = dy,
                                    .mask = tape.mask,
                                    .centred = tape.centred,
                                    .dx = dx,
                                    .d_dropped = d_dropped,
                                    .d_weight = d_weight,
                                    .d_bias = d_bias};
  dispatch(x.device(), [&](auto device) { layer_norm_backward(device, arguments); });
  return {dx, d_dropped, d_weight, d_bias};
}

struct Inputs {
  const Tensor& x;
  const Tensor& y;  // undefined without a residual connection
  const DropoutMask& mask;
  const Tensor& weight;
  const Tensor& bias;
  const LayerNormOptions& options;
};

// Fills the tape where there is one.
Tensor forward(const Inputs& inputs, Tape* tape) {
  const auto& [x, y, mask, weight, bias, options] = inputs;
  const bool bf16_output = options.for_products && bfloat16_products() && !y.defined() && x.dtype() == DType::f32;
  Tensor out = Tensor::empty(x.shape(), {bf16_output ? DType::bf16 : x.dtype(), x.device()});
  const DType of_y = y.defined() ? y.dtype() : x.dtype();
  if (tape != nullptr) {
    *tape = {.normalised = y.defined() ? Tensor::empty_like(x) : x.detach(),
             .statistics = Tensor::empty({as_rows(x).rows, 3}, {x.dtype(), x.device()}),
             .weight = weight.detach(),
             .mask = mask,
             .fused = y.defined(),
             .centred = options.form != NormForm::rms,
             .has_bias = bias.defined(),
             .dropped = of_y};
  }
  const Tensor none;
  const LayerNormForward arguments{.x = x,
                                   .y = y,
                                   .mask = mask,
                                   .weight = weight,
                                   .bias = bias,
                                   .options = options,
                                   .sum = tape != nullptr && y.defined() ? tape->normalised : none,
                                   .out = out,
                                   .statistics = tape != nullptr ? tape->statistics : none};
  dispatch(x.device(), [&](auto device) { layer_norm_forward(device, arguments); });
  return out;
}

void check(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
           const LayerNormOptions& options) {
  check_rows(op, x);
  check_column_vector(op, x, "weight", weight);
  if (bias.defined()) check_column_vector(op, x, "bias", bias);
  if (bias.defined() && options.form == NormForm::rms)
    fail<ShapeError>("{}: the rms form takes no bias, found one of shape {}", op, bias.shape().text());
  if (!(options.epsilon > 0)) fail<ConfigError>("{}: epsilon is {}, needs a value above 0", op, options.epsilon);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const LayerNormOptions& options) {
  const ProfileScope scope("layer_norm");
  check("layer_norm", x, weight, bias, options);
  const Tensor no_addend;
  const DropoutMask no_mask;
  const Inputs inputs{x, no_addend, no_mask, weight, bias, options};
  if (!is_recording({x, weight, bias})) return forward(inputs, nullptr);
  Tape tape;
  Tensor out = forward(inputs, &tape);
  record("layer_norm", {x, weight, bias}, out, [tape = std::move(tape)](const Tensor& dy) {
    const auto [dx, d_dropped, d_weight, d_bias] = backward(tape, dy);
    return Gradients{dx, d_weight, d_bias};
  });
  return out;
}

Tensor residual_dropout_layer_norm(const Tensor& x, const Tensor& y, const DropoutMask& mask, const Tensor& weight,
                                   const Tensor& bias, const LayerNormOptions& options) {
  constexpr std::string_view op = "residual_dropout_layer_norm";
  const ProfileScope scope(op);
  check(op, x, weight, bias, options);
  check_addend(op, x, y);
  check_dropout(op, mask);
  const Inputs inputs{x, y, mask, weight, bias, options};
  if (!is_recording({x, y, weight, bias})) return forward(inputs, nullptr);
  Tape tape;
  Tensor out = forward(inputs, &tape);
  record("residual_dropout_layer_norm", {x, y, weight, bias}, out, [tape = std::move(tape)](const Tensor& dy) {
    const auto [dx, d_dropped, d_weight, d_bias] = backward(tape, dy);
    return Gradients{dx, d_dropped.defined() ? d_dropped : dx, d_weight, d_bias};
  });
  return out;
}

}  // namespace attune

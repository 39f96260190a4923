#include "attune/nn/feed_forward.h"

#include "attune/ops/gated_activation.h"

namespace attune {

// In a gated unit the activation is applied after linear_1, which computes both halves.
Activation fused_activation(FeedForwardActivation activation) {
  switch (activation) {
    case FeedForwardActivation::relu:
      return Activation::relu;
    case FeedForwardActivation::gelu:
      return Activation::gelu;
    case FeedForwardActivation::gelu_tanh:
      return Activation::gelu_tanh;
    case FeedForwardActivation::gelu_sigmoid:
      return Activation::gelu_sigmoid;
    case FeedForwardActivation::silu:
      return Activation::silu;
    case FeedForwardActivation::tanh:
      return Activation::tanh;
    case FeedForwardActivation::swiglu:
    case FeedForwardActivation::geglu:
    case FeedForwardActivation::geglu_tanh:
    case FeedForwardActivation::reglu:
      break;
  }
  return Activation::none;
}

std::optional<Activation> gate_of(FeedForwardActivation activation) {
  if (activation == FeedForwardActivation::swiglu) return Activation::silu;
  if (activation == FeedForwardActivation::geglu) return Activation::gelu;
  if (activation == FeedForwardActivation::geglu_tanh) return Activation::gelu_tanh;
  if (activation == FeedForwardActivation::reglu) return Activation::relu;
  return std::nullopt;
}

FeedForward::FeedForward(const FeedForwardConfig& config)
    : gate_(gate_of(config.activation)),
      linear_1_(config.d_model, gate_ ? 2 * config.d_ff : config.d_ff, config.bias,
                fused_activation(config.activation)),
      linear_2_(config.d_ff, config.d_model, config.bias),
      dropout_(config.dropout) {}

int64_t FeedForward::parameter_count(const FeedForwardConfig& c) {
  const int64_t inner = gate_of(c.activation) ? 2 * c.d_ff : c.d_ff;
  return c.d_model * (inner + c.d_ff) + (c.bias ? inner + c.d_model : 0);
}

Tensor FeedForward::operator()(const Tensor& x) const {
  if (gate_) return linear_2_.bf16_output(dropout_(gated_activation(linear_1_.bf16_output(x), *gate_)));
  return linear_2_.bf16_output(linear_1_.bf16_output(x, dropout_.mask()));
}

}  // namespace attune

#pragma once

#include <optional>

#include "attune/base/fields.h"
#include "attune/nn/dropout.h"
#include "attune/nn/linear.h"
#include "attune/ops/activation.h"

namespace [[gnu::visibility("default")]] attune {

/// The last four are gated units, Shazeer 2020: SwiGLU gates with silu, GEGLU with gelu or its tanh form, ReGLU with
/// relu.
enum class FeedForwardActivation { relu, gelu, gelu_tanh, gelu_sigmoid, silu, tanh, swiglu, geglu, geglu_tanh, reglu };

template <>
struct EnumNames<FeedForwardActivation> {
  static constexpr std::pair<FeedForwardActivation, const char*> values[] = {
      {FeedForwardActivation::relu, "relu"},
      {FeedForwardActivation::gelu, "gelu"},
      {FeedForwardActivation::gelu_tanh, "gelu_tanh"},
      {FeedForwardActivation::gelu_sigmoid, "gelu_sigmoid"},
      {FeedForwardActivation::silu, "silu"},
      {FeedForwardActivation::tanh, "tanh"},
      {FeedForwardActivation::swiglu, "swiglu"},
      {FeedForwardActivation::geglu, "geglu"},
      {FeedForwardActivation::geglu_tanh, "geglu_tanh"},
      {FeedForwardActivation::reglu, "reglu"}};
};
/// Returns the activation of a gated unit's gate; nothing if `activation` is not a gated unit.
std::optional<Activation> gate_of(FeedForwardActivation activation);

/// The activation that a product's epilogue applies; none for a gated unit.
Activation fused_activation(FeedForwardActivation activation);

struct FeedForwardConfig {
  int64_t d_model = 512;
  int64_t d_ff = 2048;
  FeedForwardActivation activation = FeedForwardActivation::relu;
  bool bias = true;    // of both products
  double dropout = 0;  // after the activation
};

/// The feed-forward sublayer of a layer.        [tokens, d_model] -> same
class FeedForwardNetwork : public Module {
 public:
  virtual Tensor operator()(const Tensor& x) const = 0;
};

/// FFN(x) = act(x W1 + b1) W2 + b2, Vaswani et al. 2017, section 3.3; with a gated unit
/// FFN(x) = (act(x W + b) * (x V + c)) W2 + b2, Shazeer 2020, equation 6.        [tokens, d_model] -> same
///   linear_1   [d_model -> d_ff]; in a gated unit [d_model -> 2 d_ff]: the d_ff outputs of W, then those of V
///   linear_2   [d_ff -> d_model]
class FeedForward final : public FeedForwardNetwork {
 public:
  explicit FeedForward(const FeedForwardConfig& config);
  static int64_t parameter_count(const FeedForwardConfig& config);
  Tensor operator()(const Tensor& x) const override;
  void visit(Visitor& v) override {
    v("linear_1", linear_1_);
    v("linear_2", linear_2_);
    v("dropout", dropout_);
  }

 private:
  std::optional<Activation> gate_;  // of a gated unit; linear_1 applies any other activation
  Linear linear_1_, linear_2_;
  Dropout dropout_;
};

}  // namespace attune

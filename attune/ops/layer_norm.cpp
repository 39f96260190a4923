#include "attune/ops/layer_norm.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/ops/layer_norm_kernel.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

struct Tape {
  Tensor normalised;  // x, or the sum of the residual connection
  Tensor statistics;  // [rows, 3]
  Tensor gain;
  DropoutMask mask;
  bool fused;  // with a residual connection
  bool centred;
  bool has_bias;
};

template <class T>
LayerNormStatistics<T>* statistics_of(const Tensor& t) {
  static_assert(sizeof(LayerNormStatistics<T>) == 3 * sizeof(T));
  return t.defined() ? reinterpret_cast<LayerNormStatistics<T>*>(t.data<T>()) : nullptr;
}

// dx, d_dropped (undefined unless fused with an active mask), d_gain, d_bias (undefined without a bias)
std::array<Tensor, 4> backward(const Tape& tape, const Tensor& dy) {
  const Tensor& x = tape.normalised;
  const auto [rows, columns] = rows_of("layer_norm", x);
  Tensor dx = Tensor::empty_like(x);
  Tensor d_dropped = tape.fused && tape.mask.active() ? Tensor::empty_like(x) : Tensor{};
  Tensor d_gain = Tensor::empty_like(tape.gain);
  Tensor d_bias = tape.has_bias ? Tensor::empty_like(tape.gain) : Tensor{};
  dispatch_floating("layer_norm", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    const LayerNormBackward<T> arguments{.rows = rows,
                                         .columns = columns,
                                         .normalised = x.data<T>(),
                                         .statistics = statistics_of<T>(tape.statistics),
                                         .gain = tape.gain.data<T>(),
                                         .dy = dy.data<T>(),
                                         .mask = tape.mask,
                                         .centred = tape.centred,
                                         .dx = dx.data<T>(),
                                         .d_dropped = d_dropped.defined() ? d_dropped.data<T>() : nullptr,
                                         .d_gain = d_gain.data<T>(),
                                         .d_bias = d_bias.defined() ? d_bias.data<T>() : nullptr};
    dispatch(x.device(), [&](auto device) { layer_norm_backward(device, arguments); });
  });
  return {dx, d_dropped, d_gain, d_bias};
}

// y is undefined without a residual connection.
Tensor forward(const Tensor& x, const Tensor& y, const DropoutMask& mask, const Tensor& gain, const Tensor& bias,
               const LayerNormOptions& options, Tape* tape) {
  const auto [rows, columns] = rows_of("layer_norm", x);
  Tensor out = Tensor::empty_like(x);
  if (tape != nullptr) {
    *tape = {.normalised = y.defined() ? Tensor::empty_like(x) : x.detach(),
             .statistics = Tensor::empty({rows, 3}, {x.dtype(), x.device()}),
             .gain = gain.detach(),
             .mask = mask,
             .fused = y.defined(),
             .centred = options.form != NormForm::rms,
             .has_bias = bias.defined()};
  }
  dispatch_floating("layer_norm", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    const LayerNormForward<T> arguments{
        .rows = rows,
        .columns = columns,
        .x = x.data<T>(),
        .y = y.defined() ? y.data<T>() : nullptr,
        .mask = mask,
        .gain = gain.data<T>(),
        .bias = bias.defined() ? bias.data<T>() : nullptr,
        .options = options,
        .sum = tape != nullptr && y.defined() ? tape->normalised.template data<T>() : nullptr,
        .out = out.data<T>(),
        .statistics = tape != nullptr ? statistics_of<T>(tape->statistics) : nullptr};
    dispatch(x.device(), [&](auto device) { layer_norm_forward(device, arguments); });
  });
  return out;
}

void check(std::string_view op, const Tensor& x, const Tensor& gain, const Tensor& bias,
           const LayerNormOptions& options) {
  rows_of(op, x);
  check_column_vector(op, x, "gain", gain);
  if (bias.defined()) check_column_vector(op, x, "bias", bias);
  if (bias.defined() && options.form == NormForm::rms)
    fail<ShapeError>("{}: the rms form takes no bias, found one of shape {}", op, bias.shape().text());
  if (!(options.epsilon > 0)) fail<ConfigError>("{}: epsilon is {}, needs a value above 0", op, options.epsilon);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, const LayerNormOptions& options) {
  const ProfileScope scope("layer_norm");
  check("layer_norm", x, gain, bias, options);
  if (!is_recording({x, gain, bias})) return forward(x, {}, {}, gain, bias, options, nullptr);
  Tape tape;
  Tensor out = forward(x, {}, {}, gain, bias, options, &tape);
  record("layer_norm", {x, gain, bias}, out, [tape = std::move(tape)](const Tensor& dy) {
    const auto [dx, d_dropped, d_gain, d_bias] = backward(tape, dy);
    return Gradients{dx, d_gain, d_bias};
  });
  return out;
}

Tensor residual_dropout_layer_norm(const Tensor& x, const Tensor& y, const DropoutMask& mask, const Tensor& gain,
                                   const Tensor& bias, const LayerNormOptions& options) {
  constexpr std::string_view op = "residual_dropout_layer_norm";
  const ProfileScope scope(op);
  check(op, x, gain, bias, options);
  check_like(op, x, "the sublayer's output", y);
  check_dropout(op, mask);
  if (!is_recording({x, y, gain, bias})) return forward(x, y, mask, gain, bias, options, nullptr);
  Tape tape;
  Tensor out = forward(x, y, mask, gain, bias, options, &tape);
  record("residual_dropout_layer_norm", {x, y, gain, bias}, out, [tape = std::move(tape)](const Tensor& dy) {
    const auto [dx, d_dropped, d_gain, d_bias] = backward(tape, dy);
    return Gradients{dx, d_dropped.defined() ? d_dropped : dx, d_gain, d_bias};
  });
  return out;
}

}  // namespace attune

#include "attune/nn/encoder.h"

#include <algorithm>

#include "attune/base/execution.h"

namespace attune {

Encoder::Encoder(std::vector<std::shared_ptr<EncoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm,
                 std::shared_ptr<RelativeBias> relative_bias)
    : LayerStack(Place::encoder),
      layers_(std::move(layers)),
      norm_(std::move(final_norm)),
      relative_bias_(std::move(relative_bias)) {}

Tensor Encoder::operator()(const Tensor& x, const AttentionMask& mask) const {
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    stop_if_unwanted();
    const LayerUse use(layers_, i);
    if (!leaves_out(static_cast<int64_t>(i))) h = (*layers_[i])(h, mask);
  }
  return norm_ ? (*norm_)(h) : h;
}

EncoderOutput Encoder::forward(const Tensor& x, AttentionMask mask) const {
  mask.with_weights = true;
  EncoderOutput result{.states = x, .weights = std::vector<Tensor>(layers_.size())};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerUse use(layers_, i);
    if (leaves_out(static_cast<int64_t>(i))) continue;
    const AttentionOutput output = layers_[i]->forward(result.states, mask);
    result.states = output.states;
    result.weights[i] = output.weights;
  }
  if (norm_) result.states = (*norm_)(result.states);
  return result;
}

void Encoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (std::find(layers_.begin(), layers_.end(), layers_[i]) - layers_.begin() == static_cast<std::ptrdiff_t>(i))
      v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
  if (relative_bias_) v("relative_bias", *relative_bias_);
}

}  // namespace attune

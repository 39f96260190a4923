#include "attune/nn/encoder.h"

namespace attune {

Encoder::Encoder(std::vector<std::shared_ptr<EncoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm,
                 std::shared_ptr<RelativeBias> relative_bias)
    : layers_(std::move(layers)), norm_(std::move(final_norm)), relative_bias_(std::move(relative_bias)) {}

Tensor Encoder::operator()(const Tensor& x, AttentionMask mask, std::vector<Tensor>* weights) const {
  if (weights != nullptr) weights->resize(layers_.size());
  Tensor h = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (weights == nullptr) {
      h = (*layers_[i])(h, mask);
    } else {
      mask.with_weights = true;
      const AttentionOutput output = layers_[i]->forward(h, mask);
      h = output.states;
      (*weights)[i] = output.weights;
    }
  }
  return norm_ ? (*norm_)(h) : h;
}

void Encoder::visit(Visitor& v) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (i == 0 || layers_[i] != layers_[0]) v("layers." + std::to_string(i), *layers_[i]);
  if (norm_) v("norm", *norm_);
  if (relative_bias_) v("relative_bias", *relative_bias_);
}

}  // namespace attune

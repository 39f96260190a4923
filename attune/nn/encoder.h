#pragma once

#include <memory>
#include <vector>

#include "attune/nn/encoder_layer.h"
#include "attune/nn/layer_stack.h"

namespace [[gnu::visibility("default")]] attune {

/// States [tokens, d_model] and the attention weights of every layer, see AttentionOutput. The weights of a layer that
/// is left out (set_layer_dropout()) are undefined.
struct EncoderOutput {
  Tensor states;
  std::vector<Tensor> weights;
};

/// A stack of encoder layers, followed by `final_norm` unless it is null. `relative_bias` is the one that the layers
/// were built with, or null. A layer may stand several times in `layers`, so that these share parameters (Lan et al.
/// 2020): its name is that of the first place, and each use has dropout masks of its own, see LayerUse.
class Encoder final : public LayerStack {
 public:
  Encoder(std::vector<std::shared_ptr<EncoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm,
          std::shared_ptr<RelativeBias> relative_bias = {});
  /// x [tokens, d_model] -> same
  Tensor operator()(const Tensor& x, const AttentionMask& mask) const;
  /// The same with the attention weights. Keeps all activations for the gradient.
  EncoderOutput forward(const Tensor& x, AttentionMask mask) const;
  const std::vector<std::shared_ptr<EncoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;              // null: none
  std::shared_ptr<RelativeBias> relative_bias_;  // that the layers share; null: none
};

}  // namespace attune

#pragma once

#include <memory>
#include <vector>

#include "attune/nn/encoder_layer.h"

namespace attune {

/// A stack of encoder layers, with a LayerNorm after the last one where `final_norm` is given.
class Encoder final : public Module {
 public:
  Encoder(std::vector<std::unique_ptr<EncoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm);
  /// x [tokens, d_model] -> same. With `weights`, layer i's attention weights are written to (*weights)[i].
  Tensor operator()(const Tensor& x, AttentionMask mask, std::vector<Tensor>* weights = nullptr) const;
  const std::vector<std::unique_ptr<EncoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::unique_ptr<EncoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;  // null: none
};

}  // namespace attune

#pragma once

#include <memory>
#include <vector>

#include "attune/nn/encoder_layer.h"

namespace [[gnu::visibility("default")]] attune {

/// A stack of encoder layers, with a norm after the last one where `final_norm` is given. One layer may stand at every
/// place of the stack (Lan et al. 2020); it then has one name, and one dropout mask at all its places.
class Encoder final : public Module {
 public:
  Encoder(std::vector<std::shared_ptr<EncoderLayer>> layers, std::unique_ptr<LayerNorm> final_norm);
  /// x [tokens, d_model] -> same. With `weights`, layer i's attention weights are written to (*weights)[i].
  Tensor operator()(const Tensor& x, AttentionMask mask, std::vector<Tensor>* weights = nullptr) const;
  const std::vector<std::shared_ptr<EncoderLayer>>& layers() const { return layers_; }
  void visit(Visitor& v) override;

 private:
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::unique_ptr<LayerNorm> norm_;  // null: none
};

}  // namespace attune

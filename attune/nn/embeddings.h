#pragma once

#include <memory>

#include "attune/nn/input_embedding.h"
#include "attune/nn/layer_norm.h"
#include "attune/nn/positional_encoding.h"

namespace [[gnu::visibility("default")]] attune {

/// The input of a stack of layers: dropout(norm(embedding(ids) + position)); position and norm may be missing.
///   ids [tokens], positions [tokens] -> [tokens, d_model]
/// Source: Vaswani et al. 2017, sections 3.4 and 3.5; Devlin et al. 2019 for the norm.
class Embeddings final : public Module {
 public:
  /// `position` and `norm` may be null. `dropout` is applied at the end; pass 0 if `position` is last and applies it.
  Embeddings(std::unique_ptr<InputEmbedding> token, std::unique_ptr<Positions> position,
             std::unique_ptr<LayerNorm> norm, double dropout)
      : token_(std::move(token)), position_(std::move(position)), norm_(std::move(norm)), dropout_(dropout) {}

  Tensor operator()(const Indices& ids, const Indices& positions) const {
    Tensor x = (*token_)(ids);
    if (position_) x = (*position_)(x, positions);
    if (norm_) x = (*norm_)(x);
    return dropout_(x);
  }
  const Tensor& weight() const { return token_->weight(); }
  void visit(Visitor& v) override {
    token_->visit(v);  // "weight"
    if (position_) v("position", *position_);
    if (norm_) v("norm", *norm_);
    v("dropout", dropout_);
  }

 private:
  std::unique_ptr<InputEmbedding> token_;
  std::unique_ptr<Positions> position_;
  std::unique_ptr<LayerNorm> norm_;
  Dropout dropout_;
};

}  // namespace attune

#pragma once

#include "attune/nn/projection.h"

namespace [[gnu::visibility("default")]] attune {

/// activation(x W^T + b)        [..., in] -> [..., out]
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, Activation activation = Activation::none)
      : projection_(new_projection(in, out, bias)), activation_(activation) {}

  /// With existing parameters, see new_adjacent_projections(), and no activation.
  explicit Linear(Projection projection) : projection_(std::move(projection)) {}

  Tensor operator()(const Tensor& x) const { return project(x, projection_, {.activation = activation_}); }
  /// The same, then dropout; for readers that accept a bfloat16 result, see LinearOptions::bf16_output.
  Tensor bf16_output(const Tensor& x, const DropoutMask& dropout = {}) const {
    return project(x, projection_, {.activation = activation_, .dropout = dropout, .bf16_output = true});
  }
  const Projection& projection() const { return projection_; }
  void visit(Visitor& v) override { projection_.visit(v); }

 private:
  Projection projection_;
  Activation activation_ = Activation::none;
};

}  // namespace attune

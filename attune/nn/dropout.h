#pragma once

#include "attune/nn/module.h"
#include "attune/ops/dropout.h"

namespace [[gnu::visibility("default")]] attune {

/// Dropout that knows its place in the model; off until set_training().
class Dropout final : public Module {
 public:
  explicit Dropout(double probability);
  Tensor operator()(const Tensor& x) const { return mask_.active() ? dropout(x, mask_) : x; }

  /// For operations that apply dropout themselves.
  const DropoutMask& mask() const { return mask_; }
  void enable(uint64_t seed, uint64_t step, uint32_t op) { mask_ = {probability_, seed, step, op}; }
  void disable() { mask_ = {}; }
  void visit(Visitor&) override {}

 private:
  double probability_;
  DropoutMask mask_;
};

}  // namespace attune

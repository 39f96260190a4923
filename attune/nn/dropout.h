#pragma once

#include "attune/base/execution.h"
#include "attune/nn/module.h"
#include "attune/ops/dropout.h"

namespace [[gnu::visibility("default")]] attune {

/// While one lives, dropout is on, with the masks of this seed and step: for training. Sets Execution::dropout.
class DropoutScope {
 public:
  explicit DropoutScope(const DropoutStep& step) : scope_([&](Execution& e) { e.dropout = step; }) {}

 private:
  ExecutionScope scope_;
};

/// Dropout at one place of a model. Its mask is a pure function of execution().dropout and of that place; where
/// execution() has no dropout, it is off.
class Dropout final : public Module {
 public:
  explicit Dropout(double probability);
  Tensor operator()(const Tensor& x) const {
    const DropoutMask here = mask();
    return here.active() ? dropout(x, here) : x;
  }

  /// For operations that apply dropout themselves.
  DropoutMask mask() const;
  /// 0 until number_dropouts().
  void set_place(uint32_t place) { place_ = place; }
  void visit(Visitor&) override {}

 private:
  double probability_;
  uint32_t place_ = 0;
};

}  // namespace attune

#pragma once

#include "attune/base/execution.h"
#include "attune/nn/module.h"
#include "attune/ops/dropout.h"

namespace [[gnu::visibility("default")]] attune {

/// While this object lives, dropout is on, with the masks of `step`: for training. Sets Execution::dropout.
class DropoutScope {
 public:
  explicit DropoutScope(const DropoutStep& step) : scope_([&](Execution& e) { e.dropout = step; }) {}

 private:
  ExecutionScope scope_;
};

/// One dropout of a model. Its mask is a pure function of execution().dropout and of its index (set_index()). It is
/// off if execution() has no dropout.
class Dropout final : public Module {
 public:
  explicit Dropout(double probability);
  Tensor operator()(const Tensor& x) const {
    const DropoutMask here = mask();
    return here.active() ? dropout(x, here) : x;
  }

  /// The mask, for operations that apply dropout themselves.
  DropoutMask mask() const;
  /// Throws ConfigError unless 0 <= probability < 1.
  void set_probability(double probability);
  /// Sets the index of this module in its model, see number_dropouts(); 0 until then.
  void set_index(uint32_t index) { index_ = index; }
  void visit(Visitor&) override {}

 private:
  double probability_ = 0;
  uint32_t index_ = 0;
};

}  // namespace attune

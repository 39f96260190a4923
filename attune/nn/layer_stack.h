#pragma once

#include <algorithm>
#include <cstdint>

#include "attune/base/execution.h"
#include "attune/nn/module.h"

namespace [[gnu::visibility("default")]] attune {

/// A stack of layers of which a training step can leave some out, see set_layer_dropout().
class LayerStack : public Module {
 public:
  void set_probability(double probability) { probability_ = probability; }

 protected:
  enum class Place : uint32_t { encoder, decoder };
  explicit LayerStack(Place place) : place_(place) {}

  /// Whether layer `layer`, from 0, is left out of the forward pass at work: its input is then its output. A pure
  /// function of execution().dropout, the stack's place and the layer; false if execution() has no dropout.
  bool leaves_out(int64_t layer) const;

 private:
  Place place_;
  double probability_ = 0;
};

/// While this object lives, dropout has masks of its own for this use of layer i of a stack: layers that share their
/// parameters are one object, whose every use in a forward pass draws anew. Sets DropoutStep::use.
class LayerUse {
 public:
  template <class Layers>
  LayerUse(const Layers& layers, size_t i)
      : scope_([&](Execution& e) {
          const auto at = layers.begin() + static_cast<std::ptrdiff_t>(i);
          if (e.dropout) e.dropout->use = static_cast<uint32_t>(std::count(layers.begin(), at, *at));
        }) {}

 private:
  ExecutionScope scope_;
};

/// Training steps leave each layer of the module's stacks out with this probability: its input is then its output, and
/// nothing of it is computed. The layers that stay are not scaled; without dropout all of them stay. There is one draw
/// for a layer and a forward pass. Throws ConfigError unless 0 <= probability < 1. Source: LayerDrop, Fan et al. 2020,
/// "Reducing Transformer Depth on Demand with Structured Dropout", section 3.2, after stochastic depth, Huang et al.
/// 2016, "Deep Networks with Stochastic Depth".
void set_layer_dropout(Module& module, double probability);

}  // namespace attune

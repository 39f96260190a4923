#include "attune/nn/layer_stack.h"

#include <limits>

#include "attune/base/check.h"
#include "attune/base/execution.h"
#include "attune/kernels/dropout_mask.h"

namespace attune {
namespace {

class LayerDropoutSetter final : public Visitor {
 public:
  explicit LayerDropoutSetter(double probability) : probability_(probability) {}

 protected:
  void on_module(const std::string&, Module& part) override {
    if (auto* stack = dynamic_cast<LayerStack*>(&part)) stack->set_probability(probability_);
  }

 private:
  double probability_;
};

}  // namespace

// The draws are a dropout mask with a row for each layer. Its op number counts down from the largest, those of Dropout
// modules count up from 0, so that they never meet.
bool LayerStack::leaves_out(int64_t layer) const {
  const std::optional<DropoutStep>& now = execution().dropout;
  if (!now) return false;
  const uint32_t op = std::numeric_limits<uint32_t>::max() - static_cast<uint32_t>(place_);
  return !keep_mask({probability_, now->seed, now->step, op}, layer, 0);
}

void set_layer_dropout(Module& module, double probability) {
  check_below_one("layer_dropout", probability);
  LayerDropoutSetter setter(probability);
  module.visit(setter);
}

}  // namespace attune

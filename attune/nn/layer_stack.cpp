#include "attune/nn/layer_stack.h"

#include <limits>

#include "attune/base/check.h"
#include "attune/base/execution.h"
#include "attune/kernels/dropout_mask.h"
#include "attune/nn/for_each_part.h"

namespace attune {

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
  for_each_part<LayerStack>(module, [&](LayerStack& stack) { stack.set_probability(probability); });
}

}  // namespace attune

#include "attune/autograd/checkpoint.h"

#include <utility>

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"

namespace attune {
namespace {

struct Kept {
  std::vector<Tensor> inputs;  // with their nodes
  CheckpointedFunction function;
  Execution execution;  // of the forward pass
};

// Each leaf begins with the gradient that its input has so far. The additions and their order are then the same as
// without a checkpoint, and so are the results, bit for bit.
Gradients walk_again(const Kept& kept, const Tensor& dy) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : kept.inputs) {
    Tensor& leaf = leaves.emplace_back(input.detach());
    if (!requires_gradient(input)) continue;
    require_gradient(leaf);
    set_gradient(leaf, gradient(input));
    clear_gradient(input);
  }
  Tensor y;
  {
    const ExecutionScope scope([&](Execution& e) {
      e.recording = true;
      e.dropout = kept.execution.dropout;
      e.precision = kept.execution.precision;
      e.bfloat16_copies = kept.execution.bfloat16_copies;
    });
    y = kept.function(leaves);
  }
  if (requires_gradient(y)) backward(y, dy);
  Gradients gradients;
  for (const Tensor& leaf : leaves) {
    gradients.push_back(gradient(leaf));
    clear_gradient(leaf);
  }
  return gradients;
}

}  // namespace

Tensor checkpoint(std::vector<Tensor> inputs, CheckpointedFunction function) {
  if (!execution().recording) return function(inputs);
  const ProfileScope scope("checkpoint");
  Tensor y;
  {
    const ExecutionScope first_pass([](Execution& e) {
      e.recording = false;
      e.will_repeat = true;
    });
    y = function(inputs).detach();
  }
  // Recorded even if no input requires a gradient: parameters that the function uses may require one.
  Kept kept{.inputs = inputs, .function = std::move(function), .execution = execution()};
  record_always("checkpoint", inputs, y, [kept = std::move(kept)](const Tensor& dy) { return walk_again(kept, dy); });
  return y;
}

}  // namespace attune

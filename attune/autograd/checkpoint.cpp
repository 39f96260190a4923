#include "attune/autograd/checkpoint.h"

#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"

namespace attune {
namespace {

struct Kept {
  std::vector<Tensor> inputs;  // detached
  // The node of each input, or null. The checkpoint's own node owns them and outlives their use here. With owners here
  // too, a long chain of checkpoints would be freed by recursion.
  std::vector<GradientNode*> nodes;
  CheckpointedFunction function;
  Execution execution;  // of the forward pass
};

// Each leaf begins with the gradient that its input has so far. The additions and their order are then the same as
// without a checkpoint, and so are the results, bit for bit.
Gradients walk_again(const Kept& kept, const Tensor& dy) {
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < kept.inputs.size(); ++i) {
    Tensor& leaf = leaves.emplace_back(kept.inputs[i]);
    if (kept.nodes[i] == nullptr) continue;
    require_gradient(leaf);
    // The gradient of a node has the shape of the tensor before any reshape().
    const Tensor so_far = std::exchange(kept.nodes[i]->gradient, {});
    if (so_far.defined()) set_gradient(leaf, so_far.reshape({leaf.shape().begin(), leaf.shape().end()}));
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
  Kept kept{.inputs = {}, .nodes = {}, .function = std::move(function), .execution = execution()};
  for (const Tensor& input : inputs) {
    kept.inputs.push_back(input.detach());
    kept.nodes.push_back(input.node().get());
  }
  record_always("checkpoint", inputs, y, [kept = std::move(kept)](const Tensor& dy) { return walk_again(kept, dy); });
  return y;
}

}  // namespace attune

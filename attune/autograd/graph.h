#pragma once
// Reverse-mode differentiation over a graph of nodes, one for each recorded operation.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "attune/base/execution.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// One gradient for each input of an operation, in the order of the inputs; undefined where none is needed.
using Gradients = std::vector<Tensor>;
using BackwardFunction = std::function<Gradients(const Tensor& dy)>;

/// A step of the computation. Leaves (parameters) have no `backward` and keep their gradient.
struct GradientNode {
  const char* op = "leaf";
  std::vector<std::shared_ptr<GradientNode>> inputs;  // null where no gradient is needed
  BackwardFunction backward;
  uint64_t order = 0;  // larger than that of every input
  Shape shape;
  Tensor gradient;
  bool walked = false;  // its backward has run and is gone
};

/// Makes `x` a leaf whose gradient is kept.
void require_gradient(Tensor& x);
bool requires_gradient(const Tensor& x);

/// d(loss)/d(x) after backward(); undefined when x took no part.
Tensor gradient(const Tensor& x);
void set_gradient(const Tensor& x, Tensor gradient);
void clear_gradient(const Tensor& x);

/// Whether operations on these inputs have to be recorded: gradients are on and one input requires one.
bool is_recording(std::initializer_list<Tensor> inputs);

/// Says how `output` came from `inputs`. `backward` may own detached tensors; it is called at most once and freed at
/// once.
void record(const char* op, std::initializer_list<Tensor> inputs, Tensor& output, BackwardFunction backward);

/// The same whether or not an input requires a gradient, for what depends on parameters that are not among its inputs.
void record_always(const char* op, std::span<const Tensor> inputs, Tensor& output, BackwardFunction backward);

/// Is told of a leaf whose gradient is complete, while backward() goes on with the others.
using LeafObserver = std::function<void(const GradientNode& leaf)>;

/// Adds d(loss)/d(leaf) to the gradient of every leaf that `loss` depends on. `cotangent` defaults to ones. What a step
/// kept for its gradient is freed as soon as the step has been walked. `on_complete` is called once the last step that
/// uses a leaf has been walked; not for a leaf that a step without gradient uses too. Throws ShapeError when loss was
/// not recorded, or when a step of it has been walked before.
void backward(const Tensor& loss, const Tensor& cotangent = {}, const LeafObserver& on_complete = {});

/// While one lives, nothing is recorded on this thread and nothing is kept alive: Execution::recording is false.
class NoGrad {
 public:
  NoGrad() : scope_([](Execution& e) { e.recording = false; }) {}

 private:
  ExecutionScope scope_;
};

}  // namespace attune

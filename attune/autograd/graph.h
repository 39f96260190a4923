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

/// A node of the graph. Leaves (parameters) have no `backward` and keep their gradient.
struct GradientNode {
  GradientNode() = default;
  GradientNode(const GradientNode&) = delete;
  GradientNode& operator=(const GradientNode&) = delete;
  ~GradientNode();  // without recursion, however long the chain of inputs is

  const char* op = "leaf";
  std::vector<std::shared_ptr<GradientNode>> inputs;  // null where no gradient is needed
  BackwardFunction backward;
  uint64_t order = 0;  // larger than that of every input
  Shape shape;
  Tensor gradient;
  bool walked = false;  // `backward` has run and is freed
};

/// Makes `x` a leaf whose gradient is kept.
void require_gradient(Tensor& x);
bool requires_gradient(const Tensor& x);

/// Whether a tensor of one type may have a gradient of the other: the same, or float32 and bfloat16.
bool is_gradient_type(DType gradient, DType tensor);

/// d(loss)/d(x) after backward(); undefined when the loss does not depend on x.
Tensor gradient(const Tensor& x);
/// Replaces it; an undefined `gradient` clears it. Throws ShapeError when `x` requires none, or has another shape or
/// type (float32 and bfloat16 go together).
void set_gradient(const Tensor& x, Tensor gradient);
void clear_gradient(const Tensor& x);

/// Whether operations on these inputs must be recorded: Execution::recording is true and an input requires a gradient.
bool is_recording(std::initializer_list<Tensor> inputs);

/// Records that `output` was computed from `inputs`. `backward` may own detached tensors; it is called at most once and
/// then freed.
void record(const char* op, std::initializer_list<Tensor> inputs, Tensor& output, BackwardFunction backward);

/// The same even if no input requires a gradient: for operations that use parameters which are not among the inputs.
void record_always(const char* op, std::span<const Tensor> inputs, Tensor& output, BackwardFunction backward);

/// Called with each leaf whose gradient is complete, before backward() goes on with the others.
using LeafObserver = std::function<void(const GradientNode& leaf)>;

/// Adds d(loss)/d(leaf) to the gradient of every leaf that `loss` depends on. `cotangent` defaults to ones on the
/// device of `loss`. For the losses in ops/ it may be on the CPU: they read it there, without a wait. The tensors that
/// a node keeps are freed as soon as its backward has run. `on_complete` is called for a leaf when the last node that
/// uses it is done, and not at all if one of these nodes gets no gradient. It does not know of uses within a
/// checkpoint(), which may come later. Throws ShapeError when `loss` was not recorded, when the cotangent has another
/// shape, type (float32 and bfloat16 go together) or, with more than one number, device, when backward() has already
/// walked one of its nodes, or when gradients to be added are on two devices and have more than one number.
void backward(const Tensor& loss, const Tensor& cotangent = {}, const LeafObserver& on_complete = {});

/// While this object lives, this thread records no operation and keeps no tensor for it, nor will it for the same work
/// later: Execution::recording and will_repeat are false.
class NoGrad {
 public:
  NoGrad() : scope_([](Execution& e) { e.recording = e.will_repeat = false; }) {}

 private:
  ExecutionScope scope_;
};

}  // namespace attune

#pragma once
// Saves memory at the cost of time: backward() computes the activations of a function again instead of keeping them.

#include <functional>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

using CheckpointedFunction = std::function<Tensor(std::span<const Tensor> inputs)>;

/// Returns function(inputs) and keeps only the inputs; backward() runs the function again, recorded, and differentiates
/// it. The second run has the dropout and the precision of execution() at this call, and the threads and profile of
/// backward(). All gradients, also those of parameters that the function uses, are the same bit for bit if parameters
/// and everything else that the function refers to live until then and do not change.
/// Other tensors that require a gradient must be among the inputs; inputs may be undefined. Under NoGrad this is just
/// function(inputs). Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
Tensor checkpoint(std::vector<Tensor> inputs, CheckpointedFunction function);

}  // namespace attune

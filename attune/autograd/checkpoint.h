#pragma once
// Memory for time: what a function keeps for its gradient is not kept, but computed again when it is needed.

#include <functional>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

using CheckpointedFunction = std::function<Tensor(std::span<const Tensor> inputs)>;

/// function(inputs), of which only the inputs are kept; backward() runs the function again, recorded, and walks that.
/// The second time it has the dropout and the precision of the execution() of this call, whatever those of backward()
/// are; threads and profile are backward()'s. Gradients are the same bit for bit, those of parameters that the function
/// uses included, provided that parameters and all else that it refers to are then as they are now, and live as long.
/// Whatever else it depends on that requires a gradient has to be among the inputs; those may be undefined. Under
/// NoGrad this is function(inputs). Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
Tensor checkpoint(std::vector<Tensor> inputs, CheckpointedFunction function);

}  // namespace attune

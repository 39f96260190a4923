#pragma once

#include "attune/base/execution.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// While this object lives, modules that this thread builds do not initialise their parameters or touch their memory.
/// For models whose parameters are all loaded afterwards, by load_parameters() or map_parameters(). Sets
/// Execution::initialize_parameters to false.
class NoInitialization {
 public:
  NoInitialization() : scope_([](Execution& e) { e.initialize_parameters = false; }) {}

 private:
  ExecutionScope scope_;
};

/// Returns a matrix, table or bias of zeros; uninitialised under NoInitialization.
Tensor new_parameter(const Shape& shape);

}  // namespace attune

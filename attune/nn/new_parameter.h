#pragma once

#include "attune/base/execution.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// While one lives, modules that this thread builds have parameters without values, whose memory is never touched: for
/// models whose parameters are all loaded, by load_parameters() or map_parameters(). Execution::initialize_parameters
/// is false.
class NoInitialization {
 public:
  NoInitialization() : scope_([](Execution& e) { e.initialize_parameters = false; }) {}

 private:
  ExecutionScope scope_;
};

/// A matrix, table or bias of zeros; of no particular values under NoInitialization.
Tensor new_parameter(const Shape& shape);

}  // namespace attune

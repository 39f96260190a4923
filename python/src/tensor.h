#pragma once

#include <memory>

#include "attune/tensor/tensor.h"
#include "call.h"

namespace attune::python {

/// A Python function with tensors, as code without Python's lock calls and drops it.
std::shared_ptr<nb::callable> shared_callable(nb::callable function);

}  // namespace attune::python

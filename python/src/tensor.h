#pragma once

#include <memory>

#include "attune/tensor/tensor.h"
#include "call.h"

namespace attune::python {

/// A Python function for code without Python's lock: dropping the last copy takes the lock. Calls need a CallbackScope.
std::shared_ptr<nb::callable> shared_callable(nb::callable function);

}  // namespace attune::python

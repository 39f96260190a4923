#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct MatmulOptions {
  bool transpose_a = false;  // a is stored as [k, m]
  bool transpose_b = false;  // b is stored as [n, k]
};

/// a [m, k] times b [k, n]; returns [m, n]. Differentiable in both. Throws ShapeError.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

}  // namespace attune

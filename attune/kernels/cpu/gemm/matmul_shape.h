#pragma once

#include <cstdint>

#include "attune/kernels/activation_kind.h"

namespace attune::cpu {

/// MatmulForm with the sizes of a product: a is stored as [m, k], with `transpose_a` as [k, m]; b as [k, n], with
/// `transpose_b` as [n, k]; c as [m, n]; all row-major.
struct MatmulShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  Activation activation = Activation::none;
};

}  // namespace attune::cpu

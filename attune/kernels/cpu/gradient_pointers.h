#pragma once

#include <cstdint>

#include "attune/kernels/activation_kind.h"

namespace attune {

/// LinearGradient as pointers; T is what sums are formed in. `saved`, `dz` and `d_bias` may be null.
template <class T, class Dy, class Dz>
struct GradientPointers {
  int64_t rows, columns;
  const Dy* dy;
  const Dz* saved;
  Activation activation;
  double scale;
  Dz* dz;
  T* d_bias;
};

}  // namespace attune

#pragma once

#include <cstdint>

#include "attune/kernels/cross_entropy.h"

namespace attune {

/// CrossEntropyInputs as pointers.
template <class T>
struct CrossEntropyPointers {
  T* logits;  // [rows, columns]
  const int32_t* labels;
  int64_t rows;
  int64_t columns;
  int32_t ignore_index;
  double label_smoothing;
  CrossEntropyRow* results;  // [rows]
};

/// Where the gradient of the logits goes.
template <class Out>
struct CrossEntropyGradient {
  double scale;
  Out* d_logits;  // [rows, columns]
};

}  // namespace attune

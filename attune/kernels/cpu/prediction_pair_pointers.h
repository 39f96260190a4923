#pragma once

#include <cstdint>

#include "attune/kernels/cpu/cross_entropy_pointers.h"
#include "attune/kernels/prediction_pairs.h"

namespace attune {

/// PredictionPairs as pointers.
template <class T>
struct PairPointers {
  const T* logits;  // [2 pairs, columns]
  const int32_t* labels;
  int64_t pairs;
  int64_t columns;
  int32_t ignore_index;
  double label_smoothing;
  double weight;
  CrossEntropyRow* results;  // [2 pairs]
};

}  // namespace attune

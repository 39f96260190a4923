#pragma once

#include <cstdint>

#include "attune/kernels/cross_entropy.h"

namespace attune {

/// CrossEntropyInputs as pointers.
template <class T>
struct CrossEntropyPointers {
  T* logits;  // [rows, row_size]
  const int32_t* labels;
  int64_t rows;
  int64_t columns;  // of the classes
  int64_t row_size;
  int32_t ignore_index;
  double label_smoothing;
  CrossEntropyRow* results;  // [rows]
};

/// results [rows, kCrossEntropyNumbers] float64.
template <class T>
CrossEntropyPointers<T> cross_entropy_pointers(const CrossEntropyInputs& in, const Tensor& results) {
  return {.logits = in.logits.data<T>(),
          .labels = in.labels.data<int32_t>(),
          .rows = in.logits.size(0),
          .columns = in.class_count(),
          .row_size = in.logits.size(1),
          .ignore_index = in.ignore_index,
          .label_smoothing = in.label_smoothing,
          .results = cross_entropy_rows(results)};
}

/// PredictionPairs as pointers.
template <class T>
struct PairPointers {
  CrossEntropyPointers<T> in;  // rows: 2 pairs
  double weight;

  int64_t pairs() const { return in.rows / 2; }
};

/// Where the gradient of the logits goes.
template <class Out>
struct CrossEntropyGradient {
  double scale;
  Out* d_logits;  // [rows, row_size]
};

}  // namespace attune

#pragma once

#include <cstdint>

#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

template <class T>
struct CrossEntropyRows {
  const T* logits;  // [rows, columns]
  const int32_t* labels;
  int64_t rows;
  int64_t columns;
  int32_t ignore_index;
  double label_smoothing;
};

/// Of one row. Zeros for a row that takes no part.
struct CrossEntropyRow {
  double loss = 0;  // smoothed
  double negative_log_likelihood = 0;
  double shift = 0;  // what was subtracted from the logits,
  double sum = 0;    // and the sum of the exponentials that were left
  bool correct = false;
};

/// results [rows]
void cross_entropy_forward(Cpu, const CrossEntropyRows<float>& in, CrossEntropyRow* results);
void cross_entropy_forward(Cpu, const CrossEntropyRows<double>& in, CrossEntropyRow* results);

/// d_logits [rows, columns] = scale * the gradient of the sum of losses, given the results of forward. d_logits may be
/// the logits.
void cross_entropy_backward(Cpu, const CrossEntropyRows<float>& in, const CrossEntropyRow* results, double scale,
                            float* d_logits);
void cross_entropy_backward(Cpu, const CrossEntropyRows<double>& in, const CrossEntropyRow* results, double scale,
                            double* d_logits);
void cross_entropy_backward(Cpu, const CrossEntropyRows<float>& in, const CrossEntropyRow* results, double scale,
                            bfloat16* d_logits);

}  // namespace attune

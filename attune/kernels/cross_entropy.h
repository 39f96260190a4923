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
/// Both at once, of logits that nobody needs afterwards: they become exponentials. d_logits of their type may be them.
template <class T, class Out>
struct CrossEntropyLoss {
  T* logits;  // [rows, columns]
  const int32_t* labels;
  int64_t rows;
  int64_t columns;
  int32_t ignore_index;
  double label_smoothing;
  double scale;
  CrossEntropyRow* results;  // [rows]
  Out* d_logits;             // [rows, columns]
};
void cross_entropy_loss(Cpu, const CrossEntropyLoss<float, float>& arguments);
void cross_entropy_loss(Cpu, const CrossEntropyLoss<double, double>& arguments);
void cross_entropy_loss(Cpu, const CrossEntropyLoss<float, bfloat16>& arguments);

}  // namespace attune

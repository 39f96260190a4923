#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

struct CrossEntropyInputs {
  Tensor logits;  // [rows, columns], float32 or float64
  Tensor labels;  // int32 [rows]
  int32_t ignore_index = -1;
  double label_smoothing = 0;
};

/// Of one row; zeros for a row that takes no part.
struct CrossEntropyRow {
  double loss = 0;  // smoothed
  double negative_log_likelihood = 0;
  double shift = 0;    // what was subtracted from the logits,
  double sum = 0;      // and the sum of the exponentials that were left
  double correct = 0;  // 1 where the label is the first largest logit
};
/// In a tensor a CrossEntropyRow is a row of so many float64 numbers.
constexpr int64_t kCrossEntropyNumbers = 5;
static_assert(sizeof(CrossEntropyRow) == kCrossEntropyNumbers * sizeof(double));

/// results [rows, kCrossEntropyNumbers] float64: a CrossEntropyRow of each row.
void cross_entropy_forward(Cpu, const CrossEntropyInputs& in, const Tensor& results);
void cross_entropy_forward(Plain, const CrossEntropyInputs& in, const Tensor& results);

/// d_logits [rows, columns] = scale * the gradient of the sum of losses, given the results of forward. d_logits may be
/// the logits.
void cross_entropy_backward(Cpu, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits);
void cross_entropy_backward(Plain, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits);

/// Both at once, of logits that nobody needs afterwards: they are overwritten. d_logits is of their type, and may be
/// them, or bfloat16.
void cross_entropy_loss(Cpu, const CrossEntropyInputs& in, double scale, const Tensor& results, const Tensor& d_logits);
void cross_entropy_loss(Plain, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits);

/// totals [kCrossEntropyNumbers] float64 = the sums of the columns of `results`, row after row.
void cross_entropy_totals(Cpu, const Tensor& results, const Tensor& totals);
void cross_entropy_totals(Plain, const Tensor& results, const Tensor& totals);

}  // namespace attune

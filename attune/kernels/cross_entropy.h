#pragma once

#include <cstdint>
#include <string_view>

#include "attune/tensor/tensor.h"

namespace attune {

struct CrossEntropyInputs {
  Tensor logits;  // [rows, columns], float32 or float64
  Tensor labels;  // int32 [rows]
  int32_t ignore_index = -1;
  double label_smoothing = 0;
  int64_t classes = 0;  // the first columns; the others are not read, and their gradients are 0. 0: all columns

  int64_t class_count() const { return classes > 0 ? classes : logits.size(1); }
};

/// The results of one row; zeros for an ignored row.
struct CrossEntropyRow {
  double loss = 0;  // smoothed
  double negative_log_likelihood = 0;
  double shift = 0;       // was subtracted from the logits
  double sum = 0;         // of the exponentials of the shifted logits
  double correct = 0;     // 1 where the label is the first largest logit
  double divergence = 0;  // of one of two predictions, to the other: see prediction_pairs.h
};
/// In a tensor, a CrossEntropyRow is a row of this many float64 numbers.
constexpr int64_t kCrossEntropyNumbers = 6;
static_assert(sizeof(CrossEntropyRow) == kCrossEntropyNumbers * sizeof(double));

/// The rows of results [rows, kCrossEntropyNumbers] float64.
inline CrossEntropyRow* cross_entropy_rows(const Tensor& results) {
  return reinterpret_cast<CrossEntropyRow*>(results.data<double>());
}

/// Calls f(T{}, Out{}) with the types of the logits and of their gradients: both float32, both float64, or float32 and
/// bfloat16. Throws ShapeError, naming the operation, for other logits.
template <class F>
void with_gradient_types(std::string_view op, const Tensor& logits, const Tensor& d_logits, F&& f) {
  if (d_logits.dtype() == DType::bf16) return f(float{}, bfloat16{});
  dispatch_floating(op, logits.dtype(), [&]<class T>(T) { f(T{}, T{}); });
}

/// results [rows, kCrossEntropyNumbers] float64: one CrossEntropyRow for each row.
void cross_entropy_forward(Cpu, const CrossEntropyInputs& in, const Tensor& results);
void cross_entropy_forward(Plain, const CrossEntropyInputs& in, const Tensor& results);
void cross_entropy_forward(Cuda, const CrossEntropyInputs& in, const Tensor& results);

/// d_logits [rows, columns] = scale * the gradient of the sum of losses, from the results of forward. d_logits may be
/// the logits.
void cross_entropy_backward(Cpu, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits);
void cross_entropy_backward(Plain, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits);
void cross_entropy_backward(Cuda, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits);

/// Forward and backward at once. Overwrites the logits. d_logits has the dtype of the logits and may be the logits
/// themselves, or it is bfloat16.
void cross_entropy_loss(Cpu, const CrossEntropyInputs& in, double scale, const Tensor& results, const Tensor& d_logits);
void cross_entropy_loss(Plain, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits);
void cross_entropy_loss(Cuda, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits);

/// totals [kCrossEntropyNumbers] float64 = the sums of the columns of `results`, row after row.
void cross_entropy_totals(Cpu, const Tensor& results, const Tensor& totals);
void cross_entropy_totals(Plain, const Tensor& results, const Tensor& totals);
void cross_entropy_totals(Cuda, const Tensor& results, const Tensor& totals);

}  // namespace attune

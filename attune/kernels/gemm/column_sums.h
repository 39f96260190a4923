#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// out[j] = the sum of column j of x, or out[j] += it when `accumulate`; the same bits for any number of threads.
///   x [..., columns], out [columns], both float32 or both float64
void column_sums(Cpu, const Tensor& x, const Tensor& out, bool accumulate);
void column_sums(Plain, const Tensor& x, const Tensor& out, bool accumulate);
void column_sums(Cuda, const Tensor& x, const Tensor& out, bool accumulate);

}  // namespace attune

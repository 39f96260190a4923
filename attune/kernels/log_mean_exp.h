#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// y = log((exp(x[0]) + ... + exp(x[n - 1])) / n), element by element; minus infinity where all are, NaN where one is.
///   x: n > 0 tensors of the shape and dtype of y, float32 or float64; elements are below infinity
void log_mean_exp(Cpu, std::span<const Tensor> x, const Tensor& y);
void log_mean_exp(Plain, std::span<const Tensor> x, const Tensor& y);
void log_mean_exp(Cuda, std::span<const Tensor> x, const Tensor& y);

}  // namespace attune

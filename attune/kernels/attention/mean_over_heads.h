#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// mean[r][j] = the mean of weights[r][h][j] over the heads h. float32 or float64.
///   weights [rows, heads, keys]   mean [rows, keys]
void mean_over_heads(Cpu, const Tensor& weights, const Tensor& mean);
void mean_over_heads(Plain, const Tensor& weights, const Tensor& mean);
void mean_over_heads(Cuda, const Tensor& weights, const Tensor& mean);

}  // namespace attune

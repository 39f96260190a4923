#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// means[s] = the mean of rows offsets[s] ... offsets[s + 1] - 1 of x, zeros if there are none.
///   x [total, columns]   offsets: 0, ..., total, [sequences + 1]   means [sequences, columns]
void mean_pool_forward(Cpu, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means);
void mean_pool_forward(Plain, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means);
void mean_pool_forward(Cuda, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means);

/// dx [total, columns]: each row gets the gradient of its sequence's mean, divided by the number of rows.
void mean_pool_backward(Cpu, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx);
void mean_pool_backward(Plain, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx);
void mean_pool_backward(Cuda, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx);

}  // namespace attune

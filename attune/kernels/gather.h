#pragma once

#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// y[i] = x[rows[i]], zeros where rows[i] is -1.        x [n, columns], rows int32 [m], y [m, columns]
void gather_forward(Cpu, const Tensor& x, const Tensor& rows, const Tensor& y);
void gather_forward(Plain, const Tensor& x, const Tensor& rows, const Tensor& y);
void gather_forward(Cuda, const Tensor& x, const Tensor& rows, const Tensor& y);

/// Writes all of dx [n, columns]: row r = the sum of dy[i] over all i with rows[i] = r, in the order of i.
void gather_backward(Cpu, const Tensor& dy, const Indices& rows, const Tensor& dx);
void gather_backward(Plain, const Tensor& dy, const Indices& rows, const Tensor& dx);
void gather_backward(Cuda, const Tensor& dy, const Indices& rows, const Tensor& dx);

}  // namespace attune

#pragma once

#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

/// One head of `rows` rows: row r of x is at x + r * x_row, of y at y + r * y_row.
template <class T>
struct HeadProduct {
  const T* x;
  int64_t x_row;
  const T* weight;
  T* y;
  int64_t y_row;
  int64_t rows, in, out;
};

/// y = x W, W [in, out] row-major.
void head_matmul(Cpu, const HeadProduct<float>& product);
void head_matmul(Cpu, const HeadProduct<double>& product);

/// y = x W^T, W [out, in] row-major.
void head_matmul_transposed(Cpu, const HeadProduct<float>& product);
void head_matmul_transposed(Cpu, const HeadProduct<double>& product);

}  // namespace attune

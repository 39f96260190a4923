#pragma once

#include <cstdint>

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

}  // namespace attune

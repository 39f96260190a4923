#pragma once

#include <span>
#include <vector>

#include "attune/tensor/host_view.h"

namespace attune {

/// The values of a transposed matrix, row after row.
template <class T>
std::vector<T> transposed_values(const Tensor& matrix) {
  const HostView view(matrix);
  const std::span<const T> values = view.as<T>();
  const auto rows = static_cast<size_t>(matrix.size(0)), columns = static_cast<size_t>(matrix.size(1));
  std::vector<T> result(values.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) result[c * rows + r] = values[r * columns + c];
  return result;
}

}  // namespace attune

#pragma once

#include <cstdint>

#include "attune/tensor/tensor.h"

namespace attune {

/// A tensor seen as rows: the last dimension counts the columns, all others the rows.
struct Rows {
  int64_t rows = 0;
  int64_t columns = 0;
};

inline Rows as_rows(const Tensor& x) {
  Rows result{.rows = 1, .columns = x.size(-1)};
  for (int dim = 0; dim + 1 < x.rank(); ++dim) result.rows *= x.size(dim);
  return result;
}

}  // namespace attune

#pragma once

#include <cstdint>

namespace attune {

/// The tensors of dropout_rows() as pointers: rows of `columns` numbers, one after another. `x` may be null.
template <class Y, class Out>
struct DropoutPointers {
  const Out* x;
  const Y* y;
  Out* out;
  int64_t columns;
};

}  // namespace attune

#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Heads within longer rows: head h of row r is x[r][column + h * d ... column + (h + 1) * d). One product that forms
/// queries, keys and values leaves them so.
struct HeadColumns {
  Tensor x;  // [rows, columns]
  int64_t column = 0;
  int64_t heads = 1;
  int64_t d = 1;
};

}  // namespace attune

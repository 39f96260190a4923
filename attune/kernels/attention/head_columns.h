#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Heads that lie within longer rows: head h of row r is x[r][column + h * d ... column + (h + 1) * d). The result of
/// one product that computes queries, keys and values has this form.
struct HeadColumns {
  Tensor x;  // [rows, columns]
  int64_t column = 0;
  int64_t heads = 1;
  int64_t d = 1;
};

}  // namespace attune

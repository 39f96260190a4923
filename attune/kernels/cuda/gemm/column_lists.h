#pragma once
// The columns that each row of a product needs, in the memory of a device.

#include <span>
#include <vector>

#include "attune/kernels/cuda/runtime/platform.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/gemm/column_groups.h"

namespace attune::cuda {

struct ColumnLists {
  const int32_t* begin;  // [rows]: where the list of a row begins in `columns`
  const int32_t* count;  // [rows]
  const int32_t* columns;

  /// Number j of the columns of a row, or -1.
  ATTUNE_DEVICE int64_t column(int64_t row, int64_t j) const { return j < count[row] ? columns[begin[row] + j] : -1; }
};

class ColumnTables {
 public:
  ColumnTables(Cuda device, std::span<const ColumnGroup> groups, int64_t rows) {
    std::vector<int32_t> begin(static_cast<size_t>(rows)), count(begin.size()), columns;
    for (const ColumnGroup& group : groups) {
      for (int64_t row = group.begin; row < group.end; ++row) {
        begin[static_cast<size_t>(row)] = static_cast<int32_t>(columns.size());
        count[static_cast<size_t>(row)] = static_cast<int32_t>(group.columns.size());
      }
      columns.insert(columns.end(), group.columns.begin(), group.columns.end());
    }
    begin_ = on_device(device, begin);
    count_ = on_device(device, count);
    columns_ = on_device(device, columns);
  }
  ColumnLists lists() const { return {begin_.data<int32_t>(), count_.data<int32_t>(), columns_.data<int32_t>()}; }

 private:
  Tensor begin_, count_, columns_;
};

}  // namespace attune::cuda

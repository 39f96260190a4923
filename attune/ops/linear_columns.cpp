#include "attune/ops/linear_columns.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/ops/head_products_kernel.h"

namespace attune {
namespace {

using Columns = std::span<const std::span<const int32_t>>;

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, Columns columns) {
  if (x.rank() != 2 || weight.rank() != 2 || x.size(1) != weight.size(1) || x.dtype() != weight.dtype())
    fail<ShapeError>("linear_columns: x {} {} does not fit weight {} {}", name_of(x.dtype()), x.shape().text(),
                     name_of(weight.dtype()), weight.shape().text());
  if (bias.defined() && (bias.shape() != Shape({weight.size(0)}) || bias.dtype() != x.dtype()))
    fail<ShapeError>("linear_columns: bias {} for weight {}", bias.shape().text(), weight.shape().text());
  if (static_cast<int64_t>(columns.size()) != x.size(0))
    fail<ShapeError>("linear_columns: {} lists of columns for x {}", columns.size(), x.shape().text());
  for (size_t r = 0; r < columns.size(); ++r) {
    if (r > 0 && columns[r].data() == columns[r - 1].data() && columns[r].size() == columns[r - 1].size()) continue;
    for (const int32_t column : columns[r])
      if (column < 0 || column >= weight.size(0))
        fail<ShapeError>("linear_columns: column {} of weight {}", column, weight.shape().text());
  }
}

struct Group {
  int64_t begin, end;  // rows
};

std::vector<Group> groups_of(Columns columns) {
  std::vector<Group> groups;
  for (size_t r = 0; r < columns.size(); ++r) {
    const bool same = r > 0 && columns[r].data() == columns[r - 1].data() && columns[r].size() == columns[r - 1].size();
    if (!same) groups.push_back({static_cast<int64_t>(r), static_cast<int64_t>(r)});
    ++groups.back().end;
  }
  return groups;
}

}  // namespace

Tensor linear_columns(const Tensor& x, const Tensor& weight, const Tensor& bias, Columns columns) {
  check(x, weight, bias, columns);
  size_t longest = 0;
  for (const auto& list : columns) longest = std::max(longest, list.size());
  const int64_t width = static_cast<int64_t>(longest), in = x.size(1);
  Tensor y = Tensor::full({x.size(0), width}, -std::numeric_limits<double>::infinity(), {x.dtype(), x.device()});
  const std::vector<Group> groups = groups_of(columns);
  dispatch_floating("linear_columns", x.dtype(), [&]<class T>(T) {
    parallel_for(static_cast<int64_t>(groups.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const Group group = groups[static_cast<size_t>(g)];
        const std::span<const int32_t> list = columns[static_cast<size_t>(group.begin)];
        T* out = y.data<T>() + group.begin * width;
        const HeadProduct<T> product{.x = x.data<T>() + group.begin * in,
                                     .x_row = in,
                                     .weight = weight.data<T>(),
                                     .y = out,
                                     .y_row = width,
                                     .rows = group.end - group.begin,
                                     .in = in,
                                     .out = static_cast<int64_t>(list.size()),
                                     .columns = list.data()};
        dispatch(x.device(), [&](auto device) { head_times_columns(device, product); });
        if (!bias.defined()) continue;
        for (int64_t r = 0; r < product.rows; ++r) {
          for (size_t j = 0; j < list.size(); ++j) out[r * width + static_cast<int64_t>(j)] += bias.data<T>()[list[j]];
        }
      }
    });
  });
  return y;
}

}  // namespace attune

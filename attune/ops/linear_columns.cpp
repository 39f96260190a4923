#include "attune/ops/linear_columns.h"

#include <algorithm>
#include <array>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/kernels/panel_linear.h"
#include "attune/ops/column_groups.h"
#include "attune/tensor/buffer.h"

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
}

void check(const ColumnGroup& group, const Tensor& weight) {
  for (const int32_t column : group.columns)
    if (column < 0 || column >= weight.size(0))
      fail<ShapeError>("linear_columns: column {} of weight {}", column, weight.shape().text());
}

// The rows of the weight that a group needs are put into panels, some at a time, and multiplied from there: as many
// numbers as dot products would read, in vectors over the outputs.
void multiply(const Tensor& x, const Tensor& weight, const Tensor& bias, const ColumnGroup& group, const Tensor& y) {
  const std::span<const int32_t> list = group.columns;
  constexpr int64_t kAtOnce = 4 * kPanelOutputs;
  const int64_t in = x.size(1), width = y.size(1);
  parallel_for(static_cast<int64_t>(list.size()), kAtOnce, [&](int64_t begin, int64_t end) {
    const int64_t outputs = end - begin, panels = panel_count(outputs);
    const auto buffer = allocate_buffer(static_cast<size_t>(panels * panel_bytes(WeightFormat::float32, in)));
    auto* const data = static_cast<float*>(buffer->data());
    std::array<float, kAtOnce> biases{};
    std::array<const float*, kAtOnce> rows;
    for (int64_t j = 0; j < panels * kPanelOutputs; ++j) {
      const int64_t column = list[static_cast<size_t>(std::min(begin + j, end - 1))];
      rows[static_cast<size_t>(j)] = weight.data<float>() + column * in;
      if (bias.defined()) biases[static_cast<size_t>(j)] = bias.data<float>()[column];
    }
    for (int64_t p = 0; p < panels; ++p)
      pack_float_panel(Cpu{}, rows.data() + p * kPanelOutputs, in, data + p * kPanelOutputs * in);
    float_block(x.data<float>() + group.begin * in, in,
                {.rows = group.end - group.begin,
                 .weight = {WeightFormat::float32, outputs, in, static_cast<const std::byte*>(buffer->data()), nullptr},
                 .bias = bias.defined() ? biases.data() : nullptr,
                 .outputs = outputs,
                 .y = y.data<float>() + group.begin * width + begin,
                 .width = width});
  });
}

// One number at a time, of float64.
void multiply_plainly(const Tensor& x, const Tensor& weight, const Tensor& bias, const ColumnGroup& group,
                      const Tensor& y) {
  const int64_t in = x.size(1);
  for (int64_t r = group.begin; r < group.end; ++r) {
    double* to = y.data<double>() + r * y.size(1);
    for (const int32_t column : group.columns) {
      double sum = bias.defined() ? bias.data<double>()[column] : 0;
      for (int64_t k = 0; k < in; ++k) sum += x.data<double>()[r * in + k] * weight.data<double>()[column * in + k];
      *to++ = sum;
    }
  }
}

}  // namespace

Tensor linear_columns(const Tensor& x, const Tensor& weight, const Tensor& bias, Columns columns) {
  check(x, weight, bias, columns);
  const std::vector<ColumnGroup> groups = group_columns(columns);
  for (const ColumnGroup& group : groups) check(group, weight);
  const int64_t width = longest_list(groups);
  const Tensor y = Tensor::empty({x.size(0), width}, {x.dtype(), x.device()});
  for (const ColumnGroup& group : groups) {
    if (x.dtype() == DType::f32) {
      fill_beyond(group, y.data<float>(), width);
      multiply(x, weight, bias, group, y);
    } else {
      fill_beyond(group, y.data<double>(), width);
      multiply_plainly(x, weight, bias, group, y);
    }
  }
  return y;
}

}  // namespace attune

#include "attune/kernels/gemm/linear_columns.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/gemm/column_groups.h"
#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/kernels/for_dtype.h"
#include "attune/tensor/buffer.h"

namespace attune {
namespace {

template <class T, class Weight>
struct Product {
  const T* x;
  const Weight* weight;
  const T* bias;  // or null
  T* y;
  int64_t in, width;
};

// A row in float32: itself, or a copy in `room`.
const float* widened(const float* row, int64_t, float*) {
  return row;
}
const float* widened(const bfloat16* row, int64_t in, float* room) {
  std::copy(row, row + in, room);
  return room;
}

// Copies the rows of the weight that a group needs into panels, some at a time, and multiplies with the panels. This
// reads as many numbers as dot products would, and its vectors run over the outputs.
template <class Weight>
void multiply(const Product<float, Weight>& p, const ColumnGroup& group) {
  const std::span<const int32_t> list = group.columns;
  constexpr int64_t kAtOnce = 4 * kPanelOutputs;
  parallel_for(static_cast<int64_t>(list.size()), kAtOnce, [&](int64_t begin, int64_t end) {
    const int64_t outputs = end - begin, panels = panel_count(outputs);
    const int64_t numbers = panels * kPanelOutputs * p.in;
    const int64_t wide = std::is_same_v<Weight, float> ? 0 : numbers;  // beside the panels
    const auto buffer = allocate_buffer(static_cast<size_t>(numbers + wide) * sizeof(float));
    auto* const data = static_cast<float*>(buffer->data());
    std::array<float, kAtOnce> biases{};
    std::array<const float*, kAtOnce> rows;
    for (int64_t j = 0; j < panels * kPanelOutputs; ++j) {
      const int64_t column = list[static_cast<size_t>(std::min(begin + j, end - 1))];
      rows[static_cast<size_t>(j)] =
          widened(p.weight + column * p.in, p.in, data + numbers + (wide > 0 ? j * p.in : 0));
      if (p.bias != nullptr) biases[static_cast<size_t>(j)] = p.bias[column];
    }
    for (int64_t panel = 0; panel < panels; ++panel)
      cpu::lay_out_float_panel(rows.data() + panel * kPanelOutputs, p.in, data + panel * kPanelOutputs * p.in);
    cpu::float_block(
        {p.x + group.begin * p.in, p.in},
        {.rows = group.end - group.begin,
         .weight = {WeightFormat::float32, outputs, p.in, static_cast<const std::byte*>(buffer->data()), nullptr},
         .bias = p.bias != nullptr ? biases.data() : nullptr,
         .outputs = outputs,
         .y = p.y + group.begin * p.width + begin,
         .width = p.width});
  });
}

// Computes one number at a time.
void multiply(const Product<double, double>& p, const ColumnGroup& group) {
  for (int64_t r = group.begin; r < group.end; ++r) {
    double* to = p.y + r * p.width;
    for (const int32_t column : group.columns) {
      double sum = p.bias != nullptr ? p.bias[column] : 0;
      for (int64_t k = 0; k < p.in; ++k) sum += p.x[r * p.in + k] * p.weight[column * p.in + k];
      *to++ = sum;
    }
  }
}

}  // namespace

void linear_columns(Cpu, const Tensor& x, const Tensor& weight, const Tensor& bias, std::span<const ColumnGroup> groups,
                    const Tensor& y) {
  const auto multiply_with = [&]<class T, class Weight>(T, const Weight* numbers) {
    const Product<T, Weight> product{.x = x.data<T>(),
                                     .weight = numbers,
                                     .bias = data_or_null<T>(bias),
                                     .y = y.data<T>(),
                                     .in = x.size(1),
                                     .width = y.size(1)};
    for (const ColumnGroup& group : groups) {
      cpu::fill_beyond(group, product.y, product.width);
      multiply(product, group);
    }
  };
  if (weight.dtype() == DType::bf16) return multiply_with(float{}, weight.data<bfloat16>());
  dispatch_floating("linear_columns", x.dtype(), [&]<class T>(T) { multiply_with(T{}, weight.data<T>()); });
}

}  // namespace attune

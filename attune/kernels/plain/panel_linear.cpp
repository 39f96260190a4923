#include "attune/kernels/gemm/panel_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/plain/activation_functions.h"
#include "attune/kernels/plain/panel_reader.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// How many inputs share a scale, in a row of x and in the weights.
int64_t group_size(const Panels& weight) {
  return weight.format == WeightFormat::int4 ? kGroupInputs : weight.in;
}

// One row of x in 8 bits: x = scales[k / group size] numbers[k].
struct QuantisedRow {
  std::vector<int32_t> numbers;
  std::vector<float> scales;
};

QuantisedRow quantise(const Panels& weight, const float* x) {
  const int64_t in = weight.in, size = group_size(weight);
  QuantisedRow row{.numbers = std::vector<int32_t>(static_cast<size_t>(in)), .scales = {}};
  for (int64_t begin = 0; begin < in; begin += size) {
    const int64_t end = std::min(in, begin + size);
    float largest = 0;
    bool finite = true;
    for (int64_t k = begin; k < end; ++k) {
      largest = std::max(largest, std::abs(x[k]));
      finite = finite && std::isfinite(x[k]);
    }
    const bool usable = finite && largest >= std::numeric_limits<float>::min() * 127;
    for (int64_t k = begin; usable && k < end; ++k)
      row.numbers[static_cast<size_t>(k)] = static_cast<int32_t>(std::nearbyint(x[k] * (127 / largest)));
    row.scales.push_back(!finite ? std::numeric_limits<float>::quiet_NaN() : usable ? largest / 127 : 0.0f);
  }
  return row;
}

// x . w[o] of one row of x.
float dot(const plain::PanelReader& weight, int64_t o, const float* x, int64_t in) {
  double sum = 0;
  for (int64_t k = 0; k < in; ++k) sum += static_cast<double>(x[k]) * weight.value(o, k);
  return static_cast<float>(sum);
}

// The same with integers. The sum of a group is exact; the steps after it are rounded one by one.
float dot(const plain::PanelReader& weight, int64_t o, const QuantisedRow& x, int64_t group) {
  const auto in = static_cast<int64_t>(x.numbers.size());
  float result = 0;
  for (int64_t begin = 0; begin < in; begin += group) {
    int32_t sum = 0;
    for (int64_t k = begin; k < std::min(in, begin + group); ++k)
      sum += x.numbers[static_cast<size_t>(k)] * weight.number(o, k);
    const float scale = weight.scale(o, begin) * x.scales[static_cast<size_t>(begin / group)];
    const float term = static_cast<float>(sum) * scale;
    result += term;
  }
  return result;
}

// A row of x in float32.
std::vector<float> row_of(const Tensor& x, int64_t row, int64_t in) {
  if (x.dtype() == DType::f32) return {x.data<float>() + row * in, x.data<float>() + (row + 1) * in};
  return {x.data<bfloat16>() + row * in, x.data<bfloat16>() + (row + 1) * in};
}

// Computes any output o of one row of x.
class RowProduct {
 public:
  RowProduct(const Panels& weight, const Tensor& bias, const float* x)
      : weight_(weight), reader_(weight), bias_(data_or_null<float>(bias)), x_(x) {
    if (is_quantised(weight.format)) quantised_ = quantise(weight, x);
  }
  float operator()(int64_t o) const {
    const float product = is_quantised(weight_.format) ? dot(reader_, o, quantised_, group_size(weight_))
                                                       : dot(reader_, o, x_, weight_.in);
    return product + (bias_ != nullptr ? bias_[o] : 0);
  }

 private:
  const Panels& weight_;
  plain::PanelReader reader_;
  const float* bias_;
  const float* x_;
  QuantisedRow quantised_;
};

}  // namespace

void panel_linear(Plain, const Tensor& x, std::span<const PanelPart> parts, Activation activation) {
  const Rows size = as_rows(x);
  for (const PanelPart& part : parts) {
    for (int64_t r = 0; r < size.rows; ++r) {
      const std::vector<float> row = row_of(x, r, size.columns);
      const RowProduct product(*part.weight, part.bias, row.data());
      float* const y = part.y.data<float>() + r * part.y.size(-1) + part.column;
      for (int64_t o = 0; o < part.weight->out; ++o)
        y[o] = static_cast<float>(plain::activation_of(activation, product(o)));
    }
  }
}

void panel_linear_columns(Plain, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y) {
  const int64_t width = y.size(1);
  for (const ColumnGroup& group : groups) {
    for (int64_t r = group.begin; r < group.end; ++r) {
      const std::vector<float> row = row_of(x, r, weight.in);
      const RowProduct product(weight, bias, row.data());
      float* const to = y.data<float>() + r * width;
      for (int64_t j = 0; j < width; ++j) to[j] = -std::numeric_limits<float>::infinity();
      for (size_t j = 0; j < group.columns.size(); ++j) to[j] = product(group.columns[j]);
    }
  }
}

}  // namespace attune

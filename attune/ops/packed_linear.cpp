#include "attune/ops/packed_linear.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "attune/base/profile.h"
#include "attune/ops/packed_linear_kernel.h"

namespace attune {
namespace {

void check(const char* op, const Tensor& x, const PackedParameters& parameters) {
  const PackedWeight& weight = *parameters.weight;
  if (x.rank() < 1 || x.dtype() != DType::f32)
    fail<ShapeError>("{}: needs a float32 input, found {} {}", op, name_of(x.dtype()), x.shape().text());
  if (x.size(-1) != weight.in())
    fail<ShapeError>("{}: input {} has {} columns but the weight [{}, {}] takes {}", op, x.shape().text(), x.size(-1),
                     weight.out(), weight.in(), weight.in());
  const Tensor& bias = parameters.bias;
  if (bias.defined() && (bias.shape() != Shape({weight.out()}) || bias.dtype() != DType::f32))
    fail<ShapeError>("{}: bias {} {} for a weight [{}, {}]", op, name_of(bias.dtype()), bias.shape().text(),
                     weight.out(), weight.in());
}

const float* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<float>() : nullptr;
}

Tensor product(const char* op, const Tensor& x, std::span<const PackedParameters> parameters,
               FusedActivation activation) {
  const ProfileScope scope("packed_linear");
  constexpr size_t kMostParts = 3;
  if (parameters.empty() || parameters.size() > kMostParts)
    fail<ShapeError>("{}: takes 1 to {} weights, found {}", op, kMostParts, parameters.size());
  PackedPart parts[kMostParts];
  int64_t width = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    check(op, x, parameters[i]);
    const PackedWeight& weight = *parameters[i].weight;
    if (weight.format() != parameters[0].weight->format())
      fail<ShapeError>("{}: a weight in {} beside one in {}", op, name_of(weight.format()),
                       name_of(parameters[0].weight->format()));
    parts[i] = {panels_of(weight), data_or_null(parameters[i].bias), width};
    width += weight.out();
  }
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() = width;
  Tensor y = Tensor::empty(Shape{std::span<const int64_t>(shape)}, {DType::f32, x.device()});
  const int64_t rows = x.numel() / x.size(-1);
  if (y.numel() > 0) {
    dispatch(x.device(), [&](auto device) {
      packed_linear(device, {.x = x.data<float>(),
                             .rows = rows,
                             .in = x.size(-1),
                             .parts = std::span<const PackedPart>(parts, parameters.size()),
                             .y = y.data<float>(),
                             .width = width,
                             .activation = activation});
    });
  }
  return y;
}

}  // namespace

Tensor packed_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, FusedActivation activation) {
  const PackedParameters parameters{&weight, bias};
  return product("packed_linear", x, {&parameters, 1}, activation);
}

Tensor packed_linear_side_by_side(const Tensor& x, std::span<const PackedParameters> parameters) {
  return product("packed_linear_side_by_side", x, parameters, FusedActivation::none);
}

Tensor packed_linear_columns(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                             std::span<const std::span<const int32_t>> columns) {
  const ProfileScope scope("packed_linear");
  constexpr const char* kName = "packed_linear_columns";
  check(kName, x, {&weight, bias});
  if (x.rank() != 2 || static_cast<int64_t>(columns.size()) != x.size(0))
    fail<ShapeError>("{}: {} lists of columns for x {}", kName, columns.size(), x.shape().text());
  const auto same = [&](size_t a, size_t b) {
    return columns[a].data() == columns[b].data() && columns[a].size() == columns[b].size();
  };
  size_t longest = 0;
  for (size_t r = 0; r < columns.size(); ++r) {
    if (r > 0 && same(r, r - 1)) continue;
    longest = std::max(longest, columns[r].size());
    for (const int32_t column : columns[r])
      if (column < 0 || column >= weight.out())
        fail<ShapeError>("{}: column {} of a weight [{}, {}]", kName, column, weight.out(), weight.in());
  }
  const int64_t width = static_cast<int64_t>(longest), in = weight.in();
  Tensor y = Tensor::empty({x.size(0), width}, {DType::f32, x.device()});
  for (size_t begin = 0, end = 0; begin < columns.size(); begin = end) {
    for (end = begin + 1; end < columns.size() && same(end, begin);) ++end;
    const std::span<const int32_t> list = columns[begin];
    float* const first = y.data<float>() + static_cast<int64_t>(begin) * width;
    for (size_t r = 0; list.size() < longest && r < end - begin; ++r)
      std::fill(first + static_cast<int64_t>(r) * width + static_cast<int64_t>(list.size()),
                first + static_cast<int64_t>(r + 1) * width, -std::numeric_limits<float>::infinity());
    if (list.empty()) continue;
    dispatch(x.device(), [&](auto device) {
      packed_linear_columns(device, {.x = x.data<float>() + static_cast<int64_t>(begin) * in,
                                     .rows = static_cast<int64_t>(end - begin),
                                     .in = in,
                                     .weight = panels_of(weight),
                                     .bias = data_or_null(bias),
                                     .columns = list,
                                     .y = first,
                                     .width = width});
    });
  }
  return y;
}

}  // namespace attune

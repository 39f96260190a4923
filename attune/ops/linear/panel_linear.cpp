#include "attune/ops/linear/panel_linear.h"

#include <array>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gemm/panel_linear.h"
#include "attune/ops/linear/column_groups.h"
#include "attune/ops/linear/segment_linear.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check(const char* op, const Tensor& x, const PanelParameters& parameters) {
  const PanelWeight& weight = *parameters.weight;
  const bool may_be_narrow = weight.format() == WeightFormat::bfloat16;
  if (x.rank() < 1 || (x.dtype() != DType::f32 && !(may_be_narrow && x.dtype() == DType::bf16)))
    fail<ShapeError>("{}: a weight in {} needs an input in float32{}, found {} {}", op, enum_name(weight.format()),
                     may_be_narrow ? " or bfloat16" : "", name_of(x.dtype()), x.shape().text());
  if (x.size(-1) != weight.in())
    fail<ShapeError>("{}: input {} has {} columns but the weight [{}, {}] takes {}", op, x.shape().text(), x.size(-1),
                     weight.out(), weight.in(), weight.in());
  const Tensor& bias = parameters.bias;
  if (bias.defined() && (bias.shape() != Shape({weight.out()}) || bias.dtype() != DType::f32))
    fail<ShapeError>("{}: bias {} {} for a weight [{}, {}]", op, name_of(bias.dtype()), bias.shape().text(),
                     weight.out(), weight.in());
  if (weight.storage().device() != x.device() || (bias.defined() && bias.device() != x.device()))
    check_device(op, x, {weight.storage(), bias});
}

// Writes each product to its own tensor in `products`, or all side by side if `products` has one tensor.
void multiply(const char* op, const Tensor& x, std::span<const PanelParameters> parameters, std::span<Tensor> products,
              Activation activation) {
  const ProfileScope scope("panel_linear");
  if (parameters.empty() || parameters.size() > kMostPanelParts)
    fail<ShapeError>("{}: takes 1 to {} weights, found {}", op, kMostPanelParts, parameters.size());
  int64_t width = 0;
  for (const PanelParameters& part : parameters) {
    check(op, x, part);
    if (!read_one_input(*part.weight, *parameters[0].weight))
      fail<ShapeError>("{}: a weight in {} beside one in {}", op, enum_name(part.weight->format()),
                       enum_name(parameters[0].weight->format()));
    width += part.weight->out();
  }
  const bool together = products.size() == 1;
  std::array<PanelPart, kMostPanelParts> parts;
  int64_t column = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const PanelWeight& weight = *parameters[i].weight;
    if (!together || i == 0)
      products[i] = Tensor::empty(shape_with_columns(x, together ? width : weight.out()), {DType::f32, x.device()});
    parts[i] = {.weight = &weight.panels(),
                .bias = parameters[i].bias,
                .y = products[together ? 0 : i],
                .column = together ? column : 0};
    column += weight.out();
  }
  if (x.numel() == 0) return;
  const std::span<const PanelPart> all(parts.data(), parameters.size());
  dispatch(x.device(), [&](auto device) { panel_linear(device, x, all, activation); });
}

}  // namespace

bool read_one_input(const PanelWeight& a, const PanelWeight& b) {
  return a.format() == b.format() || (!is_quantised(a.format()) && !is_quantised(b.format()));
}

Tensor panel_linear(const Tensor& x, const PanelWeight& weight, const Tensor& bias, Activation activation) {
  const PanelParameters parameters{&weight, bias};
  Tensor y;
  multiply("panel_linear", x, {&parameters, 1}, {&y, 1}, activation);
  return y;
}

Tensor fused_panel_linear(const Tensor& x, std::span<const PanelParameters> parameters) {
  Tensor y;
  multiply("fused_panel_linear", x, parameters, {&y, 1}, Activation::none);
  return y;
}

void panel_linear_each(const Tensor& x, std::span<const PanelParameters> parameters, std::span<Tensor> products) {
  if (products.size() != parameters.size())
    fail<ShapeError>("panel_linear_each: {} weights for {} products", parameters.size(), products.size());
  multiply("panel_linear_each", x, parameters, products, Activation::none);
}

Tensor segment_panel_linear(const Tensor& x, std::span<const int64_t> offsets,
                            std::span<const PanelParameters> parameters) {
  constexpr const char* op = "segment_panel_linear";
  const ProfileScope scope("panel_linear");
  const int64_t out = parameters.empty() ? 0 : parameters[0].weight->out();
  check_segments(op, x, offsets, parameters.size());
  const Tensor y = Tensor::empty({x.size(0), out}, {DType::f32, x.device()});
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (offsets[i] == offsets[i + 1]) continue;
    const Tensor rows = x.rows(offsets[i], offsets[i + 1]);
    check(op, rows, parameters[i]);
    if (parameters[i].weight->out() != out)
      fail<ShapeError>("{}: weights with {} and {} outputs", op, out, parameters[i].weight->out());
    const PanelPart part{.weight = &parameters[i].weight->panels(),
                         .bias = parameters[i].bias,
                         .y = y.rows(offsets[i], offsets[i + 1]),
                         .column = 0};
    dispatch(x.device(), [&](auto device) { panel_linear(device, rows, {&part, 1}, Activation::none); });
  }
  return y;
}

Tensor panel_linear_columns(const Tensor& x, const PanelWeight& weight, const Tensor& bias,
                            std::span<const std::span<const int32_t>> columns) {
  const ProfileScope scope("panel_linear");
  constexpr const char* kName = "panel_linear_columns";
  check(kName, x, {&weight, bias});
  if (x.rank() != 2 || static_cast<int64_t>(columns.size()) != x.size(0))
    fail<ShapeError>("{}: {} lists of columns for x {}", kName, columns.size(), x.shape().text());
  const std::vector<ColumnGroup> groups = group_columns(columns);
  for (const ColumnGroup& group : groups)
    for (const int32_t column : group.columns)
      if (column < 0 || column >= weight.out())
        fail<ShapeError>("{}: column {} of a weight [{}, {}]", kName, column, weight.out(), weight.in());
  const Tensor y = Tensor::empty({x.size(0), longest_list(groups)}, {DType::f32, x.device()});
  dispatch(x.device(), [&](auto device) { panel_linear_columns(device, x, weight.panels(), bias, groups, y); });
  return y;
}

}  // namespace attune

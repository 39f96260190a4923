#include "attune/ops/linear/linear_check.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

// x and weight may be float32 and bfloat16 in any combination; the product converts one of them.
bool fit(DType x, DType weight) {
  const auto is_converted = [](DType type) { return type == DType::f32 || type == DType::bf16; };
  return x == weight || (is_converted(x) && is_converted(weight));
}

// Products in float64 add a bias in float64, all others one in float32.
void check_bias(const Tensor& x, const Tensor& bias) {
  const DType needed = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (bias.defined() && bias.dtype() != needed)
    fail<ShapeError>("linear: bias is {}, an input in {} needs {}", name_of(bias.dtype()), name_of(x.dtype()),
                     name_of(needed));
}

}  // namespace

void check_weight_gradient(std::string_view op, const Tensor& weight) {
  if (weight.dtype() == DType::bf16 && is_recording({weight}))
    fail<ShapeError>("{}: weight {} is bfloat16 and needs a gradient; training needs float32", op,
                     weight.shape().text());
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.rank() < 1 || weight.rank() != 2)
    fail<ShapeError>("linear: needs an input and a weight matrix, found {} and {}", x.shape().text(),
                     weight.shape().text());
  if (x.size(-1) != weight.size(1))
    fail<ShapeError>("linear: input {} has {} columns but weight {} takes {}", x.shape().text(), x.size(-1),
                     weight.shape().text(), weight.size(1));
  if (bias.defined() && (bias.rank() != 1 || bias.size(0) != weight.size(0)))
    fail<ShapeError>("linear: weight {} gives {} columns but bias has shape {}", weight.shape().text(), weight.size(0),
                     bias.shape().text());
  if (!fit(x.dtype(), weight.dtype()))
    fail<ShapeError>("linear: input is {}, weight {}", name_of(x.dtype()), name_of(weight.dtype()));
  if (weight.dtype() != DType::bf16 && !is_floating(weight.dtype())) refuse_dtype("linear", weight.dtype());
  check_bias(x, bias);
  check_weight_gradient("linear", weight);
  check_device("linear", x, {weight, bias});
}

void check_linear(const Tensor& x, const LinearParameters& parameters) {
  if (!parameters.quantised) return check_linear(x, parameters.weight, parameters.bias);
  const PanelWeight& weight = *parameters.quantised;
  const Tensor& bias = parameters.bias;
  if (x.rank() < 1 || x.size(-1) != weight.in())
    fail<ShapeError>("linear: input {} for a weight [{}, {}] in {}", x.shape().text(), weight.out(), weight.in(),
                     enum_name(weight.format()));
  if (bias.defined() && bias.shape() != Shape({weight.out()}))
    fail<ShapeError>("linear: weight [{}, {}] in {} gives {} columns but bias has shape {}", weight.out(), weight.in(),
                     enum_name(weight.format()), weight.out(), bias.shape().text());
  check_bias(x, bias);
  check_device("linear", x, {weight.storage(), bias});
}

}  // namespace attune

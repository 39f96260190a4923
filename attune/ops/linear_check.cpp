#include "attune/ops/linear_check.h"

#include "attune/base/fail.h"
#include "attune/ops/rows.h"

namespace attune {

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
  if (x.dtype() != weight.dtype() && !(x.dtype() == DType::bf16 && weight.dtype() == DType::f32))
    fail<ShapeError>("linear: input is {}, weight {}", name_of(x.dtype()), name_of(weight.dtype()));
  if (weight.dtype() != DType::bf16 && !is_floating(weight.dtype())) refuse_dtype("linear", weight.dtype());
  check_device("linear", x, {weight, bias});
}

}  // namespace attune

#include "attune/ops/linear/per_head_matmul.h"

#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gemm/per_head_matmul.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_types(std::string_view op, const Tensor& x, const Tensor& weight) {
  if (!is_floating(x.dtype())) refuse_dtype(op, x.dtype());
  if (weight.dtype() != x.dtype())
    fail<ShapeError>("{}: x is {}, weight {}", op, name_of(x.dtype()), name_of(weight.dtype()));
  check_device(op, x, {weight});
}

}  // namespace

Tensor per_head_matmul(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(0) != x.size(1) * x.size(2))
    fail<ShapeError>("per_head_matmul: x {} needs a weight with {} rows, found {}", x.shape().text(),
                     x.rank() == 3 ? x.size(1) * x.size(2) : 0, weight.shape().text());
  check_types("per_head_matmul", x, weight);
  const ProfileScope scope("per_head_matmul");
  const Tensor y = Tensor::empty({x.size(0), x.size(1), weight.size(1)}, {x.dtype(), x.device()});
  dispatch(x.device(), [&](auto device) { per_head_matmul(device, x, weight, y); });
  return y;
}

Tensor per_head_matmul_transposed(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || x.size(1) < 1 || weight.size(1) != x.size(2) ||
      weight.size(0) % x.size(1) != 0)
    fail<ShapeError>("per_head_matmul_transposed: x {} does not fit weight {}", x.shape().text(),
                     weight.shape().text());
  check_types("per_head_matmul_transposed", x, weight);
  const ProfileScope scope("per_head_matmul_transposed");
  const Tensor y = Tensor::empty({x.size(0), x.size(1), weight.size(0) / x.size(1)}, {x.dtype(), x.device()});
  dispatch(x.device(), [&](auto device) { per_head_matmul_transposed(device, x, weight, y); });
  return y;
}

}  // namespace attune

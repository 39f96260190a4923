#include "attune/ops/squared_error.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/kernels/squared_error.h"
#include "attune/ops/rows.h"
#include "attune/ops/scale.h"
#include "attune/tensor/dispatch.h"

namespace attune {

SquaredError squared_error(const Tensor& x, const Tensor& target, double scale) {
  constexpr const char* op = "squared_error";
  const ProfileScope scope(op);
  check_rows(op, x);
  check_like(op, x, "target", target);
  const double factor = scale != 0 ? scale : 1 / static_cast<double>(std::max<int64_t>(x.numel(), 1));
  const Tensor sum = Tensor::empty({1}, {DType::f64, x.device()});
  dispatch(x.device(), [&](auto device) { squared_error_forward(device, x, target, sum); });
  const Tensor loss = factor == 1 ? sum.clone() : scaled(sum, factor);  // in memory of its own
  SquaredError result{.loss = loss.to(x.dtype()).reshape({}), .sum = sum.reshape({})};
  record(op, {x}, result.loss, [factor, x = x.detach(), target = target.detach()](const Tensor& dy) {
    Tensor dx = Tensor::empty_like(x);
    const double slope = factor * dy.item();
    dispatch(x.device(), [&](auto device) { squared_error_backward(device, x, target, slope, dx); });
    return Gradients{dx};
  });
  return result;
}

}  // namespace attune

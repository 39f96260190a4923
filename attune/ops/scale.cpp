#include "attune/ops/scale.h"

#include "attune/autograd/graph.h"
#include "attune/kernels/scale.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

Tensor multiplied(const Tensor& x, double factor) {
  Tensor y = Tensor::empty_like(x);
  y.copy_from(x.detach());
  dispatch(y.device(), [&](auto device) { scale(device, y, factor); });
  return y;
}

}  // namespace

Tensor scaled(const Tensor& x, double factor) {
  check_rows("scaled", x);
  if (factor == 1) return x;
  Tensor y = multiplied(x, factor);
  record("scaled", {x}, y, [factor](const Tensor& dy) { return Gradients{multiplied(dy, factor)}; });
  return y;
}

}  // namespace attune

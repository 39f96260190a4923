#include "attune/ops/dropout.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/dropout.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

Tensor apply(const Tensor& x, const DropoutMask& mask) {
  rows_of("dropout", x);
  if (x.dtype() != DType::bf16 && !is_floating(x.dtype())) refuse_dtype("dropout", x.dtype());
  Tensor y = Tensor::empty_like(x);
  dispatch(x.device(), [&](auto device) { dropout_rows(device, {}, x, y, mask); });
  return y;
}

}  // namespace

void check_dropout(std::string_view op, const DropoutMask& mask) {
  if (!(mask.probability >= 0 && mask.probability < 1))
    fail<ConfigError>("{}: the dropout probability is {}, needs 0 <= p < 1", op, mask.probability);
}

Tensor dropout(const Tensor& x, const DropoutMask& mask) {
  check_dropout("dropout", mask);
  if (!mask.active()) return x;
  const ProfileScope scope("dropout");
  Tensor y = apply(x, mask);
  record("dropout", {x}, y, [mask](const Tensor& dy) { return Gradients{apply(dy, mask)}; });
  return y;
}

}  // namespace attune

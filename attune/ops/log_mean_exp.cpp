#include "attune/ops/log_mean_exp.h"

#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/log_mean_exp.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor log_mean_exp(std::span<const Tensor> x) {
  const ProfileScope scope("log_mean_exp");
  if (x.empty()) fail<ShapeError>("log_mean_exp: expected at least one tensor, found none");
  check_rows("log_mean_exp", x[0]);
  for (const Tensor& other : x) check_like("log_mean_exp", x[0], "x", other);
  Tensor y = Tensor::empty_like(x[0]);
  dispatch(y.device(), [&](auto device) { log_mean_exp(device, x, y); });
  return y;
}

}  // namespace attune

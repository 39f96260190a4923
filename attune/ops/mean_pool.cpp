#include "attune/ops/mean_pool.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/mean_pool.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor mean_pool(const Tensor& x, const Sequences& sequences) {
  const ProfileScope scope("mean_pool");
  if (x.rank() != 2 || x.size(0) != sequences.total())
    fail<ShapeError>("mean_pool: x {} does not fit sequences of {} rows", x.shape().text(), sequences.total());
  if (!is_floating(x.dtype())) refuse_dtype("mean_pool", x.dtype());
  Tensor means = Tensor::empty({sequences.count(), x.size(1)}, {x.dtype(), x.device()});
  dispatch(x.device(), [&](auto device) { mean_pool_forward(device, x, sequences.offsets(), means); });
  record("mean_pool", {x}, means, [sequences, shape = x.shape()](const Tensor& d_means) {
    Tensor dx = Tensor::empty(shape, {d_means.dtype(), d_means.device()});
    dispatch(dx.device(), [&](auto device) { mean_pool_backward(device, d_means, sequences.offsets(), dx); });
    return Gradients{dx};
  });
  return means;
}

}  // namespace attune

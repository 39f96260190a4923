#include "attune/ops/attention/mean_over_heads.h"

#include "attune/base/fail.h"
#include "attune/kernels/attention/mean_over_heads.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor mean_over_heads(const Tensor& weights) {
  check_rows("mean_over_heads", weights);
  if (weights.rank() != 3 || weights.size(1) < 1)
    fail<ShapeError>("mean_over_heads: needs [rows, heads, keys] with at least one head, found {}",
                     weights.shape().text());
  Tensor mean = Tensor::empty({weights.size(0), weights.size(2)}, {weights.dtype(), weights.device()});
  dispatch(weights.device(), [&](auto device) { mean_over_heads(device, weights, mean); });
  return mean;
}

}  // namespace attune

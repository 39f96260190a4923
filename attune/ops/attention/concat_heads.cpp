#include "attune/ops/attention/concat_heads.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/attention/concat_heads.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
Tensor concat_heads(const Tensor& a, const Tensor& b) {
  const ProfileScope scope("concat_heads");
  if (!a.defined() || !b.defined() || a.rank() != 3 || b.rank() != 3)
    fail<ShapeError>("concat_heads: needs a and b as [rows, heads, d], found {} and {}", a.shape().text(),
                     b.shape().text());
  if (a.dtype() != b.dtype())
    fail<ShapeError>("concat_heads: a is {} but b is {}", name_of(a.dtype()), name_of(b.dtype()));
  if (a.size(0) != b.size(0))
    fail<ShapeError>("concat_heads: a {} has {} rows but b {} has {}", a.shape().text(), a.size(0), b.shape().text(),
                     b.size(0));
  if (b.size(1) != a.size(1) && b.size(1) != 1)
    fail<ShapeError>("concat_heads: a {} has {} heads but b {} has {}, needs as many or 1", a.shape().text(), a.size(1),
                     b.shape().text(), b.size(1));
  check_rows("concat_heads", a);
  check_device("concat_heads", a, {b});
  Tensor out = Tensor::empty({a.size(0), a.size(1), a.size(2) + b.size(2)}, {a.dtype(), a.device()});
  dispatch(a.device(), [&](auto device) { concat_heads_forward(device, a, b, out); });
  record("concat_heads", {a, b}, out, [a_shape = a.shape(), b_shape = b.shape()](const Tensor& dy) {
    const TensorOptions like{dy.dtype(), dy.device()};
    Gradients gradients{Tensor::empty(a_shape, like), Tensor::empty(b_shape, like)};
    dispatch(dy.device(), [&](auto device) { concat_heads_backward(device, dy, gradients[0], gradients[1]); });
    return gradients;
  });
  return out;
}

}  // namespace attune

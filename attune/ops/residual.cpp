#include "attune/ops/residual.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/ops/dropout_kernel.h"
#include "attune/ops/rows.h"

namespace attune {

Tensor residual_dropout(const Tensor& x, const Tensor& y, const DropoutMask& mask) {
  const ProfileScope scope("residual_dropout");
  const auto [rows, columns] = rows_of("residual_dropout", x);
  check_like("residual_dropout", x, "the sublayer's output", y);
  check_dropout("residual_dropout", mask);
  Tensor sum = Tensor::empty_like(x);
  dispatch_floating("residual_dropout", x.dtype(), [&, rows = rows, columns = columns]<class T>(T) {
    dispatch(x.device(),
             [&](auto device) { dropout_rows(device, x.data<T>(), y.data<T>(), sum.data<T>(), rows, columns, mask); });
  });
  record("residual_dropout", {x, y}, sum, [mask, needs_y = requires_gradient(y)](const Tensor& dy) {
    return Gradients{dy, needs_y ? dropout(dy, mask) : Tensor{}};
  });
  return sum;
}

}  // namespace attune

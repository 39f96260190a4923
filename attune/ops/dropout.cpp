#include "attune/ops/dropout.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/dropout.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

Tensor apply(const Tensor& x, const DropoutMask& mask) {
  const auto [rows, columns] = rows_of("dropout", x);
  Tensor y = Tensor::empty_like(x);
  if (x.dtype() == DType::bf16) {
    dispatch(x.device(), [&, rows = rows, columns = columns](auto device) {
      dropout_rows(device, x.data<bfloat16>(), y.data<bfloat16>(), rows, columns, mask);
    });
    return y;
  }
  dispatch_floating("dropout", x.dtype(), [&]<class T>(T) {
    dispatch(x.device(), [&](auto device) {
      dropout_rows(device, static_cast<const T*>(nullptr), x.data<T>(), y.data<T>(), rows, columns, mask);
    });
  });
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

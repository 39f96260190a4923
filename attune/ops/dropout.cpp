#include "attune/ops/dropout.h"

#include "attune/autograd/graph.h"
#include "attune/base/profile.h"
#include "attune/base/random.h"
#include "attune/ops/dropout_kernel.h"
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

bool kept(const DropoutMask& mask, int64_t row, int64_t column) {
  if (!mask.active()) return true;
  const auto r = static_cast<uint64_t>(row);
  const auto c = static_cast<uint64_t>(column);
  const auto words = philox(
      {static_cast<uint32_t>(c / 64 * 16 + c % 16), static_cast<uint32_t>(r), mask.op, static_cast<uint32_t>(r >> 32)},
      mask.key());
  return words[c % 64 / 16] >= mask.threshold();
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

#include "attune/ops/linear/precision.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/kernels/bfloat16.h"
#include "attune/tensor/dispatch.h"
#include "attune/tensor/memory.h"

namespace attune {

// A copy is found by its number of rows, and by the address and the size of each stacked parameter. The parameters are
// kept alive, so that no other tensor gets their address. The threads of a parallel region share the copies.
struct Bfloat16Copies {
  struct Copy {
    std::vector<Tensor> parameters;
    Tensor bfloat16s;
  };
  std::mutex mutex;
  using Stack = std::vector<std::pair<const void*, int64_t>>;
  std::map<std::pair<int64_t, Stack>, Copy> copies;
};

namespace {

// The shape of x with another number of rows.
Shape shape_with_rows(const Tensor& x, int64_t rows) {
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes[0] = rows;
  return Shape{std::span<const int64_t>(sizes)};
}

Tensor in_type(const Tensor& x, DType type) {
  if (x.dtype() == type) return x.detach();
  return type == DType::bf16 ? to_bfloat16(x) : to_float32(x);
}

}  // namespace

ProductPrecisionScope::ProductPrecisionScope(ProductPrecision precision)
    : scope_([&](Execution& e) {
        e.precision = precision;
        if (precision == ProductPrecision::bfloat16 && !e.bfloat16_copies)
          e.bfloat16_copies = std::make_shared<Bfloat16Copies>();
      }) {}

bool bfloat16_products() {
  return execution().precision == ProductPrecision::bfloat16;
}

bool takes_bfloat16(const Tensor& x) {
  return x.dtype() == DType::bf16 || (bfloat16_products() && x.dtype() == DType::f32);
}

Tensor to_bfloat16(const Tensor& x) {
  if (x.dtype() == DType::bf16) return x.detach();
  const Tensor y = Tensor::empty(x.shape(), {.dtype = DType::bf16, .device = x.device()});
  dispatch(x.device(), [&](auto device) { to_bfloat16(device, x, y); });
  return y;
}

Tensor to_float32(const Tensor& x) {
  if (x.dtype() == DType::f32) return x.detach();
  const Tensor y = Tensor::empty(x.shape(), {.dtype = DType::f32, .device = x.device()});
  dispatch(x.device(), [&](auto device) { widen(device, x, y); });
  return y;
}

Tensor for_products(const Tensor& x) {
  if (!bfloat16_products() || x.dtype() != DType::f32) return x;
  Tensor y = to_bfloat16(x);
  record("for_products", {x}, y, [](const Tensor& dy) { return Gradients{to_float32(dy)}; });
  return y;
}

Tensor for_sums(const Tensor& x) {
  if (x.dtype() != DType::bf16) return x;
  Tensor y = to_float32(x);
  record("for_sums", {x}, y, [](const Tensor& dy) { return Gradients{dy}; });
  return y;
}

Tensor stacked(std::span<const Tensor> parameters, DType type) {
  if (const Tensor joined = Tensor::joined(parameters); joined.defined()) return in_type(joined, type);
  int64_t rows = 0;
  for (const Tensor& parameter : parameters) rows += parameter.size(0);
  const Tensor all = Tensor::empty(shape_with_rows(parameters[0], rows), {type, parameters[0].device()});
  int64_t row = 0;
  for (const Tensor& parameter : parameters) {
    all.rows(row, row + parameter.size(0)).copy_from(in_type(parameter, type));
    row += parameter.size(0);
  }
  return all;
}

Tensor with_rows(const Tensor& x, int64_t least_rows) {
  if (!x.defined() || x.size(0) >= least_rows) return x;
  const Tensor y = Tensor::empty(shape_with_rows(x, least_rows), {x.dtype(), x.device()});
  const Tensor rest = y.rows(x.size(0), least_rows);
  y.rows(0, x.size(0)).copy_from(x.detach());
  dispatch(x.device(), [&](auto device) { zero(device, rest); });
  return y;
}

Tensor stacked_in_bfloat16(std::span<const Tensor> parameters, int64_t least_rows) {
  const auto& kept = execution().bfloat16_copies;
  const bool rounds = std::ranges::any_of(parameters, [](const Tensor& p) { return p.dtype() == DType::f32; });
  const auto made = [&] { return with_rows(stacked(parameters, DType::bf16), least_rows); };
  if (!bfloat16_products() || !kept || !rounds) return made();
  int64_t rows = 0;
  Bfloat16Copies::Stack stack;
  for (const Tensor& parameter : parameters) {
    rows += parameter.size(0);
    stack.emplace_back(parameter.address(), parameter.numel());
  }
  std::pair key(std::max(rows, least_rows), std::move(stack));
  const std::lock_guard lock(kept->mutex);
  if (const auto found = kept->copies.find(key); found != kept->copies.end()) return found->second.bfloat16s;
  const Tensor bfloat16s = made();  // may lack memory: then there is no copy
  kept->copies.emplace(std::move(key), Bfloat16Copies::Copy{.parameters = {parameters.begin(), parameters.end()},
                                                            .bfloat16s = bfloat16s});
  return bfloat16s;
}

}  // namespace attune

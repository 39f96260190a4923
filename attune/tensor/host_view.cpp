#include "attune/tensor/host_view.h"

#include "attune/base/fail.h"

namespace attune {

HostView::HostView(const Tensor& x) : tensor_(x.detach()) {
  if (!x.defined()) fail<ShapeError>("host view: the tensor has no data");
  if (!x.device().is_host()) tensor_ = x.to(Cpu{});
  bytes_ = tensor_.host_bytes();
}

void HostView::check(DType wanted) const {
  if (tensor_.dtype() != wanted)
    fail<ShapeError>("host view: the tensor is {}, read as {}", name_of(tensor_.dtype()), name_of(wanted));
}

Tensor joined_numbers(const std::vector<Tensor>& parts, const Device& device) {
  int64_t count = 0;
  for (const Tensor& part : parts) count += part.numel();
  const Tensor all = Tensor::empty({count}, {DType::f64, device});
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    const int64_t end = begin + part.numel();
    all.rows(begin, end).copy_from(part.to(DType::f64).reshape({end - begin}));
    begin = end;
  }
  return all;
}

}  // namespace attune

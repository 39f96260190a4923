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

}  // namespace attune

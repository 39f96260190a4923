#include "attune/kernels/dropout.h"

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {

void dropout_rows(Plain, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask) {
  const Rows size = as_rows(y);
  for_storage_dtype("dropout", y.dtype(), [&]<class Y>(Y) {
    for_storage_dtype("dropout", out.dtype(), [&]<class Out>(Out) {
      for (int64_t i = 0; i < y.numel(); ++i) {
        const bool keep = keep_mask(mask, i / size.columns, i % size.columns);
        const double scaled = keep ? static_cast<double>(y.data<Y>()[i]) * (mask.active() ? mask.scale() : 1) : 0;
        const double before = x.defined() ? static_cast<double>(x.data<Out>()[i]) : 0;
        out.data<Out>()[i] = static_cast<Out>(before + scaled);
      }
    });
  });
}

}  // namespace attune

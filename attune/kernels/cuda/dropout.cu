#include "attune/kernels/dropout.h"

#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

// An element is a quad of columns.
template <class Y, class Out>
struct DropoutRows {
  const Out* x;  // or null
  const Y* y;
  Out* out;
  int64_t columns, quads;
  cuda::DropoutBits mask;

  ATTUNE_DEVICE void operator()(int64_t i) const {
    using Sum = cuda::wide_t<Out>;
    const int64_t row = i / quads, quad = i % quads;
    const auto scale = static_cast<Sum>(mask.scale());
    cuda::for_columns_of_quad(columns, quad, mask.quad(row, quad), [&](int64_t c, bool kept) {
      const int64_t at = row * columns + c;
      const Sum dropped = kept ? static_cast<Sum>(cuda::widened(y[at])) * scale : Sum{0};
      out[at] = static_cast<Out>(x != nullptr ? static_cast<Sum>(cuda::widened(x[at])) + dropped : dropped);
    });
  }
};

// Without dropout: out = x + y.
template <class Y, class Out>
struct AddElements {
  const Out* x;  // or null
  const Y* y;
  Out* out;

  ATTUNE_DEVICE Out sum(Out of_x, Y of_y) const {
    using Sum = cuda::wide_t<Out>;
    const auto added = static_cast<Sum>(cuda::widened(of_y));
    return static_cast<Out>(x != nullptr ? static_cast<Sum>(cuda::widened(of_x)) + added : added);
  }
  ATTUNE_DEVICE void operator()(int64_t i) const { out[i] = sum(x != nullptr ? x[i] : Out{}, y[i]); }
  bool has_fours() const { return cuda::has_fours(x) && cuda::has_fours(y) && cuda::has_fours(out); }
  ATTUNE_DEVICE void fours(int64_t i) const {
    const cuda::Four<Y> of_y = cuda::read_four(y, i);
    cuda::Four<Out> values = {};
    if (x != nullptr) values = cuda::read_four(x, i);
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) values.value[n] = sum(values.value[n], of_y.value[n]);
    cuda::write_four(out, i, values);
  }
};

}  // namespace

void dropout_rows(Cuda device, const Tensor& x, const Tensor& y, const Tensor& out, const DropoutMask& mask) {
  const Rows size = as_rows(y);
  const int64_t quads = cuda::quads_of(size.columns);
  for_storage_dtype("dropout", y.dtype(), [&]<class Y>(Y) {
    for_storage_dtype("dropout", out.dtype(), [&]<class Out>(Out) {
      if (!mask.active())
        return cuda::for_each_element(device, "dropout", y.numel(),
                                      AddElements<Y, Out>{data_or_null<Out>(x), y.data<Y>(), out.data<Out>()});
      cuda::for_each_element(device, "dropout", size.rows * quads,
                             DropoutRows<Y, Out>{data_or_null<Out>(x), y.data<Y>(), out.data<Out>(), size.columns,
                                                 quads, cuda::DropoutBits(mask)});
    });
  });
}

}  // namespace attune

#include "attune/kernels/bfloat16.h"

#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/launch.h"

namespace attune {
namespace {

template <class From, class To>
struct Round {
  const From* x;
  To* y;
  ATTUNE_DEVICE void operator()(int64_t i) const { y[i] = To(x[i]); }
  bool has_fours() const { return cuda::has_fours(x) && cuda::has_fours(y); }
  ATTUNE_DEVICE void fours(int64_t i) const {
    const cuda::Four<From> from = cuda::read_four(x, i);
    cuda::Four<To> to;
    ATTUNE_UNROLL
    for (int n = 0; n < 4; ++n) to.value[n] = To(from.value[n]);
    cuda::write_four(y, i, to);
  }
};

}  // namespace

void to_bfloat16(Cuda device, const Tensor& x, const Tensor& y) {
  cuda::for_each_element(device, "to_bfloat16", x.numel(), Round<float, bfloat16>{x.data<float>(), y.data<bfloat16>()});
}

void widen(Cuda device, const Tensor& x, const Tensor& y) {
  cuda::for_each_element(device, "widen", x.numel(), Round<bfloat16, float>{x.data<bfloat16>(), y.data<float>()});
}

}  // namespace attune

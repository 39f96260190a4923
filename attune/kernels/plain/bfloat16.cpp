#include "attune/kernels/bfloat16.h"

namespace attune {

void to_bfloat16(Plain, const Tensor& x, const Tensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data<bfloat16>()[i] = bfloat16(x.data<float>()[i]);
}

void widen(Plain, const Tensor& x, const Tensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = x.data<bfloat16>()[i];
}

}  // namespace attune

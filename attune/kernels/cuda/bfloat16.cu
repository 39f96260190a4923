#include "attune/kernels/bfloat16.h"

#include "attune/tensor/memory.h"

namespace attune {

void to_bfloat16(Cuda device, const Tensor& x, const Tensor& y) {
  convert(device, x, y);
}

void widen(Cuda device, const Tensor& x, const Tensor& y) {
  convert(device, x, y);
}

}  // namespace attune

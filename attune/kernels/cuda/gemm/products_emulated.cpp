// The library of the emulation.

#include "attune/kernels/cuda/gemm/products.h"

namespace attune::cuda {

void multiply(Cuda device, const char* name, const Product& product) {
  multiply_simply(device, name, product);
}

}  // namespace attune::cuda

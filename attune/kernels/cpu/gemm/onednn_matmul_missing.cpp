// A build without oneDNN: all products are our own.

#include <stdexcept>

#include "attune/kernels/cpu/gemm/onednn_matmul.h"

namespace attune::cpu {

bool has_onednn_float32() {
  return false;
}

bool has_onednn_bfloat16() {
  return false;
}

bool onednn_allows_amx() {
  return true;
}

void onednn_matmul(ProductTypes, const void*, const void*, const float*, void*, const MatmulShape&) {
  throw std::logic_error("a product of oneDNN in a build without it");
}

}  // namespace attune::cpu

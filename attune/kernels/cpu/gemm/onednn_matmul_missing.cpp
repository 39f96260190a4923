// A build without oneDNN: all products are our own.

#include <stdexcept>

#include "attune/kernels/cpu/gemm/onednn_matmul.h"

namespace attune::cpu {

bool has_onednn_float32() {
  return false;
}

bool onednn_allows_bfloat16() {
  return true;
}

bool onednn_allows_amx() {
  return true;
}

void onednn_matmul(const float*, const float*, const float*, float*, const MatmulShape&) {
  throw std::logic_error("a product of oneDNN in a build without it");
}

}  // namespace attune::cpu

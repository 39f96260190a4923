#include "attune/ops/linear/precision_choice.h"

#include "attune/kernels/gemm/matmul.h"

namespace attune {

ProductPrecision resolved(PrecisionChoice choice, const Device& device) {
  const bool multiplies = !device.is_host() || has_bfloat16_products();
  const bool narrow = choice == PrecisionChoice::bfloat16 || (choice == PrecisionChoice::automatic && multiplies);
  return narrow ? ProductPrecision::bfloat16 : ProductPrecision::float32;
}

}  // namespace attune

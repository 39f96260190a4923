#pragma once
// The precision that a user asks for, before it is known where the products will be computed.

#include "attune/base/execution.h"
#include "attune/base/fields.h"
#include "attune/tensor/device.h"

namespace [[gnu::visibility("default")]] attune {

enum class PrecisionChoice {
  float32,
  bfloat16,
  automatic  // bfloat16 on GPUs and where the processor multiplies it, float32 elsewhere
};

template <>
struct EnumNames<ProductPrecision> {
  static constexpr std::pair<ProductPrecision, const char*> values[] = {{ProductPrecision::float32, "float32"},
                                                                        {ProductPrecision::bfloat16, "bfloat16"}};
};

template <>
struct EnumNames<PrecisionChoice> {
  static constexpr std::pair<PrecisionChoice, const char*> values[] = {{PrecisionChoice::float32, "float32"},
                                                                       {PrecisionChoice::bfloat16, "bfloat16"},
                                                                       {PrecisionChoice::automatic, "auto"}};
};

/// The precision of products on `device` of this machine. `automatic` is bfloat16 on processors with AVX512_BF16 or AMX
/// and on GPUs, all of which multiply it.
ProductPrecision resolved(PrecisionChoice choice, const Device& device = {});

/// The choice that is always this precision.
inline PrecisionChoice choice_of(ProductPrecision precision) {
  return precision == ProductPrecision::bfloat16 ? PrecisionChoice::bfloat16 : PrecisionChoice::float32;
}

}  // namespace attune

#pragma once

#include "attune/base/execution.h"
#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

template <>
struct EnumNames<ProductPrecision> {
  static constexpr std::pair<ProductPrecision, const char*> values[] = {{ProductPrecision::float32, "float32"},
                                                                        {ProductPrecision::bfloat16, "bfloat16"}};
};

}  // namespace attune

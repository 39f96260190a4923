#include "attune/tensor/dtype.h"

#include "attune/base/fail.h"

namespace attune {

void refuse_dtype(std::string_view op, DType dtype) {
  fail<ShapeError>("{}: needs float32 or float64, found {}", op, name_of(dtype));
}

}  // namespace attune

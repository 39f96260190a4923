#include "attune/kernels/gemm/matmul.h"

#include "attune/kernels/cuda/gemm/products.h"
#include "attune/kernels/rows.h"

namespace attune {

void matmul(Cuda device, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c,
            const MatmulForm& form) {
  const Rows of_a = as_rows(a);
  const int64_t m = form.transpose_a ? of_a.columns : of_a.rows, n = c.size(-1);
  const int64_t k = form.transpose_a ? of_a.rows : of_a.columns;
  cuda::multiply(device, "matmul",
                 {.m = m,
                  .n = n,
                  .k = k,
                  .a = {a.raw(), of_a.columns, form.transpose_a},
                  .b = {b.raw(), form.transpose_b ? k : n, form.transpose_b},
                  .c = {c.raw(), n},
                  .type = a.dtype(),
                  .c_type = c.dtype(),
                  .bias = bias.raw(),
                  .activation = form.activation,
                  .accumulate = form.accumulate});
}

}  // namespace attune

#include "attune/kernels/gemm/per_head_matmul.h"

#include "attune/kernels/cuda/gemm/products.h"

namespace attune {
namespace {

// Each head has a product of its own: y[:, h] = x[:, h] W_h, whose rows are `heads` rows of the tensors apart.
cuda::Product product_of(const Tensor& x, const Tensor& weight, const Tensor& y, bool transposed) {
  const int64_t heads = x.size(1), in = x.size(2), out = y.size(2);
  return {.m = x.size(0),
          .n = out,
          .k = in,
          .a = {x.raw(), heads * in, /*transposed=*/false, in},
          .b = {weight.raw(), transposed ? in : out, transposed, in * out},
          .c = {y.raw(), heads * out, /*transposed=*/false, out},
          .batch = heads,
          .type = x.dtype(),
          .c_type = x.dtype()};
}

}  // namespace

void per_head_matmul(Cuda device, const Tensor& x, const Tensor& weight, const Tensor& y) {
  if (!is_floating(x.dtype())) refuse_dtype("per_head_matmul", x.dtype());
  cuda::multiply(device, "per_head_matmul", product_of(x, weight, y, false));
}

void per_head_matmul_transposed(Cuda device, const Tensor& x, const Tensor& weight, const Tensor& y) {
  if (!is_floating(x.dtype())) refuse_dtype("per_head_matmul", x.dtype());
  cuda::multiply(device, "per_head_matmul", product_of(x, weight, y, true));
}

}  // namespace attune

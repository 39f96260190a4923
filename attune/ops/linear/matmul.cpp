#include "attune/ops/linear/matmul.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

Tensor product(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const Tensor c = Tensor::empty({a.size(options.transpose_a ? 1 : 0), b.size(options.transpose_b ? 0 : 1)},
                                 {a.dtype(), a.device()});
  dispatch(a.device(), [&](auto device) {
    matmul(device, a, b, {}, c, {.transpose_a = options.transpose_a, .transpose_b = options.transpose_b});
  });
  return c;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const ProfileScope scope("matmul");
  if (a.rank() != 2 || b.rank() != 2)
    fail<ShapeError>("matmul: needs two matrices, found {} and {}", a.shape().text(), b.shape().text());
  const int64_t k = a.size(options.transpose_a ? 0 : 1);
  const int64_t k_of_b = b.size(options.transpose_b ? 1 : 0);
  if (k != k_of_b)
    fail<ShapeError>("matmul: {} and {} have inner sizes {} and {}", a.shape().text(), b.shape().text(), k, k_of_b);
  if (a.dtype() != b.dtype()) fail<ShapeError>("matmul: {} times {}", name_of(a.dtype()), name_of(b.dtype()));
  if (!is_floating(a.dtype())) refuse_dtype("matmul", a.dtype());
  check_device("matmul", a, {b});

  Tensor c = product(a, b, options);
  record("matmul", {a, b}, c, [a = a.detach(), b = b.detach(), options](const Tensor& dc) {
    // d(op(a)) = dc op(b)^T and d(op(b)) = op(a)^T dc; the gradient of a transposed input is the transposed product.
    const Tensor da = options.transpose_a ? product(b, dc, {.transpose_a = options.transpose_b, .transpose_b = true})
                                          : product(dc, b, {.transpose_b = !options.transpose_b});
    const Tensor db = options.transpose_b ? product(dc, a, {.transpose_a = true, .transpose_b = options.transpose_a})
                                          : product(a, dc, {.transpose_a = !options.transpose_a});
    return Gradients{da, db};
  });
  return c;
}

}  // namespace attune

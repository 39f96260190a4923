#include "attune/kernels/gemm/matmul.h"

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/plain/activation_functions.h"
#include "attune/kernels/rows.h"

namespace attune {

void matmul(Plain, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form) {
  const Rows of_a = as_rows(a);
  const int64_t m = form.transpose_a ? of_a.columns : of_a.rows, n = c.size(-1);
  const int64_t k = form.transpose_a ? of_a.rows : of_a.columns;
  with_product_types(a.dtype(), c.dtype(), [&]<class In, class Out, class Bias>(In, Out, Bias) {
    const Bias* const added = data_or_null<Bias>(bias);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = added != nullptr ? added[j] : 0;
        for (int64_t p = 0; p < k; ++p) {
          const double x = a.data<In>()[form.transpose_a ? p * m + i : i * k + p];
          const double y = b.data<In>()[form.transpose_b ? j * k + p : p * n + j];
          sum += x * y;
        }
        sum = plain::activation_of(form.activation, sum);
        Out& to = c.data<Out>()[i * n + j];
        to = static_cast<Out>(form.accumulate ? static_cast<double>(to) + sum : sum);
      }
    }
  });
}

}  // namespace attune

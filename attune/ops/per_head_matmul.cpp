#include "attune/ops/per_head_matmul.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/kernels/per_head_matmul.h"

namespace attune {
namespace {

struct Sizes {
  int64_t in = 0, out = 0, weight_head = 0;  // weight_head: numbers of W_h
};

// times(device, product) for each head, some rows at a time.
template <class Times>
Tensor each_head(const Tensor& x, const Tensor& weight, const Sizes& s, Times&& times) {
  constexpr int64_t kRows = 16, kWorthAThread = int64_t{1} << 18;
  const int64_t rows = x.size(0), heads = x.size(1), blocks = (rows + kRows - 1) / kRows;
  Tensor y = Tensor::empty({rows, heads, s.out}, {x.dtype(), x.device()});
  const int64_t products = std::max<int64_t>(1, std::min(rows, kRows) * s.in * s.out);
  dispatch_floating("head products", x.dtype(), [&]<class T>(T) {
    parallel_for(blocks * heads, std::max<int64_t>(1, kWorthAThread / products), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / blocks, first = i % blocks * kRows;
        const HeadProduct<T> product{.x = x.data<T>() + (first * heads + head) * s.in,
                                     .x_row = heads * s.in,
                                     .weight = weight.data<T>() + head * s.weight_head,
                                     .y = y.data<T>() + (first * heads + head) * s.out,
                                     .y_row = heads * s.out,
                                     .rows = std::min(kRows, rows - first),
                                     .in = s.in,
                                     .out = s.out};
        dispatch(x.device(), [&](auto device) { times(device, product); });
      }
    });
  });
  return y;
}

}  // namespace

Tensor per_head_matmul(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(0) != x.size(1) * x.size(2))
    fail<ShapeError>("per_head_matmul: x {} needs a weight with {} rows, found {}", x.shape().text(),
                     x.rank() == 3 ? x.size(1) * x.size(2) : 0, weight.shape().text());
  const ProfileScope scope("per_head_matmul");
  const Sizes sizes{.in = x.size(2), .out = weight.size(1), .weight_head = x.size(2) * weight.size(1)};
  return each_head(x, weight, sizes, [](auto device, const auto& product) { head_matmul(device, product); });
}

Tensor per_head_matmul_transposed(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(1) != x.size(2) || weight.size(0) % x.size(1) != 0)
    fail<ShapeError>("per_head_matmul_transposed: x {} does not fit weight {}", x.shape().text(),
                     weight.shape().text());
  const ProfileScope scope("per_head_matmul_transposed");
  const int64_t out = weight.size(0) / x.size(1);
  const Sizes sizes{.in = x.size(2), .out = out, .weight_head = out * x.size(2)};
  return each_head(x, weight, sizes, [](auto device, const auto& product) { head_matmul_transposed(device, product); });
}

}  // namespace attune

#include "attune/ops/take_columns.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/parallel.h"
#include "attune/ops/rows.h"

namespace attune {

Tensor take_columns(const Tensor& x, int64_t begin, int64_t end) {
  if (!x.defined() || x.rank() != 2)
    fail<ShapeError>("take_columns: needs a matrix, found {}", x.defined() ? x.shape().text() : "nothing");
  const int64_t n = x.size(0), width = x.size(1), taken = end - begin;
  if (begin < 0 || end < begin || end > width)
    fail<ShapeError>("take_columns: columns [{}, {}) of {}", begin, end, x.shape().text());
  Tensor y = Tensor::empty({n, taken}, {x.dtype(), x.device()});
  dispatch_floating("take_columns", x.dtype(), [&]<class T>(T) {
    parallel_for(n, row_grain(taken), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        std::copy_n(x.data<T>() + i * width + begin, taken, y.data<T>() + i * taken);
    });
  });
  record("take_columns", {x}, y, [n, width, begin, taken](const Tensor& dy) {
    Tensor dx = Tensor::zeros({n, width}, {dy.dtype(), dy.device()});
    dispatch_floating("take_columns", dy.dtype(), [&]<class T>(T) {
      parallel_for(n, row_grain(taken), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          std::copy_n(dy.data<T>() + i * taken, taken, dx.data<T>() + i * width + begin);
      });
    });
    return Gradients{dx};
  });
  return y;
}

}  // namespace attune

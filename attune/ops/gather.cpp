#include "attune/ops/gather.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"

namespace attune {

Tensor gather(const Tensor& x, const Tensor& rows) {
  const ProfileScope scope("gather");
  if (x.rank() != 2 || rows.rank() != 1)
    fail<ShapeError>("gather: needs a matrix and a list of rows, found {} and {}", x.shape().text(),
                     rows.shape().text());
  const int64_t width = x.size(1);
  for (const int32_t row : rows.values<int32_t>()) {
    if (row < -1 || row >= x.size(0)) fail<ShapeError>("gather: row {} of {}", row, x.shape().text());
  }
  Tensor y = Tensor::zeros({rows.size(0), width}, {x.dtype(), x.device()});
  dispatch_floating("gather", x.dtype(), [&]<class T>(T) {
    T* out = y.data<T>();
    for (const int32_t row : rows.values<int32_t>()) {
      if (row >= 0) std::copy_n(x.data<T>() + row * width, width, out);
      out += width;
    }
  });
  record("gather", {x}, y, [rows, shape = x.shape(), width](const Tensor& dy) {
    Tensor dx = Tensor::zeros(shape, {dy.dtype(), dy.device()});
    dispatch_floating("gather", dy.dtype(), [&]<class T>(T) {
      const T* from = dy.data<T>();
      for (const int32_t row : rows.values<int32_t>()) {
        for (int64_t c = 0; row >= 0 && c < width; ++c) dx.data<T>()[row * width + c] += from[c];
        from += width;
      }
    });
    return Gradients{dx};
  });
  return y;
}

}  // namespace attune

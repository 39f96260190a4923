#include "attune/kernels/gather.h"

#include <algorithm>

// Simple loops that serve every device whose memory can be read with pointers.

namespace attune {
namespace {

void forward(const Tensor& x, const Tensor& rows, const Tensor& y) {
  const int64_t columns = x.size(1);
  dispatch_floating("gather", x.dtype(), [&]<class T>(T) {
    T* to = y.data<T>();
    for (const int32_t row : rows.values<int32_t>()) {
      if (row >= 0) {
        std::copy_n(x.data<T>() + row * columns, columns, to);
      } else {
        std::fill_n(to, columns, T{0});
      }
      to += columns;
    }
  });
}

void backward(const Tensor& dy, const Indices& rows, const Tensor& dx) {
  const int64_t columns = dx.size(1);
  dispatch_floating("gather", dy.dtype(), [&]<class T>(T) {
    std::fill_n(dx.data<T>(), dx.numel(), T{0});
    const T* from = dy.data<T>();
    for (const int32_t row : rows.values()) {
      T* const to = dx.data<T>() + std::max(row, 0) * columns;
      for (int64_t c = 0; row >= 0 && c < columns; ++c) to[c] += from[c];
      from += columns;
    }
  });
}

}  // namespace

void gather_forward(Cpu, const Tensor& x, const Tensor& rows, const Tensor& y) {
  forward(x, rows, y);
}
void gather_forward(Plain, const Tensor& x, const Tensor& rows, const Tensor& y) {
  forward(x, rows, y);
}
void gather_backward(Cpu, const Tensor& dy, const Indices& rows, const Tensor& dx) {
  backward(dy, rows, dx);
}
void gather_backward(Plain, const Tensor& dy, const Indices& rows, const Tensor& dx) {
  backward(dy, rows, dx);
}

}  // namespace attune

#include "attune/kernels/mean_pool.h"

#include <algorithm>

// Simple loops that serve every device whose memory can be read with pointers.

namespace attune {
namespace {

void forward(const Tensor& x, std::span<const int32_t> offsets, const Tensor& means) {
  const int64_t columns = x.size(1);
  dispatch_floating("mean_pool", x.dtype(), [&]<class T>(T) {
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      T* const mean = means.data<T>() + static_cast<int64_t>(s) * columns;
      std::fill_n(mean, columns, T{0});
      const T share = T{1} / static_cast<T>(std::max(1, offsets[s + 1] - offsets[s]));
      for (int64_t row = offsets[s]; row < offsets[s + 1]; ++row)
        for (int64_t c = 0; c < columns; ++c) mean[c] += share * x.data<T>()[row * columns + c];
    }
  });
}

void backward(const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx) {
  const int64_t columns = dx.size(1);
  dispatch_floating("mean_pool", dx.dtype(), [&]<class T>(T) {
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      const T* const d_mean = d_means.data<T>() + static_cast<int64_t>(s) * columns;
      const T share = T{1} / static_cast<T>(std::max(1, offsets[s + 1] - offsets[s]));
      for (int64_t row = offsets[s]; row < offsets[s + 1]; ++row)
        for (int64_t c = 0; c < columns; ++c) dx.data<T>()[row * columns + c] = share * d_mean[c];
    }
  });
}

}  // namespace

void mean_pool_forward(Cpu, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means) {
  forward(x, offsets, means);
}
void mean_pool_forward(Plain, const Tensor& x, std::span<const int32_t> offsets, const Tensor& means) {
  forward(x, offsets, means);
}
void mean_pool_backward(Cpu, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx) {
  backward(d_means, offsets, dx);
}
void mean_pool_backward(Plain, const Tensor& d_means, std::span<const int32_t> offsets, const Tensor& dx) {
  backward(d_means, offsets, dx);
}

}  // namespace attune

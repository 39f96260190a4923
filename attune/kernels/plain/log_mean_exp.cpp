#include "attune/kernels/log_mean_exp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/kernels/for_dtype.h"

namespace attune {

void log_mean_exp(Plain, std::span<const Tensor> x, const Tensor& y) {
  dispatch_floating("log_mean_exp", y.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < y.numel(); ++i) {
      double largest = -std::numeric_limits<double>::infinity();
      for (const Tensor& of : x) largest = std::max(largest, static_cast<double>(of.data<T>()[i]));
      if (std::isinf(largest)) largest = 0;
      double sum = 0;
      for (const Tensor& of : x) sum += std::exp(of.data<T>()[i] - largest);
      y.data<T>()[i] = static_cast<T>(largest + std::log(sum / static_cast<double>(x.size())));
    }
  });
}

}  // namespace attune

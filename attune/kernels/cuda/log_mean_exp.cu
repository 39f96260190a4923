#include "attune/kernels/log_mean_exp.h"

#include <cmath>
#include <vector>

#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

template <class T>
struct LogMeanExp {
  const T* const* x;
  int64_t count;
  T* y;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    T largest = -cuda::infinity<T>();
    for (int64_t k = 0; k < count; ++k) largest = largest < x[k][i] ? x[k][i] : largest;
    if (std::isinf(largest)) largest = 0;
    T sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += std::exp(x[k][i] - largest);
    y[i] = largest + std::log(sum / static_cast<T>(count));
  }
};

}  // namespace

void log_mean_exp(Cuda device, std::span<const Tensor> x, const Tensor& y) {
  dispatch_floating("log_mean_exp", y.dtype(), [&]<class T>(T) {
    std::vector<const T*> pointers;
    for (const Tensor& one : x) pointers.push_back(one.data<T>());
    const Tensor table = cuda::structs_on_device<const T*>(device, pointers);
    cuda::for_each_element(
        device, "log_mean_exp", y.numel(),
        LogMeanExp<T>{static_cast<const T* const*>(table.raw()), static_cast<int64_t>(x.size()), y.data<T>()});
  });
}

}  // namespace attune

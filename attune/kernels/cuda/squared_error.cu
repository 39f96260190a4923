#include "attune/kernels/squared_error.h"

#include "attune/kernels/cuda/block_sum.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr int kErrorThreads = 512;

// One block: a thread adds up every kThreads-th element, so that the order of the sum depends on their number alone.
template <class T>
struct SquaredErrorSum {
  static constexpr int kThreads = kErrorThreads;
  const T* x;
  const T* target;
  int64_t count;
  double* sum;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const double all = cuda::block_sum(thread, count, [&](int64_t i) {
      const double error = static_cast<double>(x[i]) - target[i];
      return error * error;
    });
    if (thread.index() == 0) *sum = all;
  }
};

template <class T>
struct SquaredErrorGradient {
  const T* x;
  const T* target;
  T* dx;
  double factor;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    dx[i] = static_cast<T>(factor * 2 * (static_cast<double>(x[i]) - target[i]));
  }
};

}  // namespace

void squared_error_forward(Cuda device, const Tensor& x, const Tensor& target, const Tensor& sum) {
  const int64_t count = x.numel();
  dispatch_floating("squared_error", x.dtype(), [&]<class T>(T) {
    cuda::launch(device, "squared_error", {.blocks = 1, .threads = cuda::threads_for(count, kErrorThreads)},
                 SquaredErrorSum<T>{x.data<T>(), target.data<T>(), count, sum.data<double>()});
  });
}

void squared_error_backward(Cuda device, const Tensor& x, const Tensor& target, double factor, const Tensor& dx) {
  dispatch_floating("squared_error", x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "squared_error", x.numel(),
                           SquaredErrorGradient<T>{x.data<T>(), target.data<T>(), dx.data<T>(), factor});
  });
}

}  // namespace attune

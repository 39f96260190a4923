#include "attune/kernels/softmax.h"

#include <cmath>

#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

constexpr int64_t kElementsOfThread = 4;

// One block for each row. A thread has the columns index, index + threads, ...: neighbours read neighbours.
template <class T>
struct SoftmaxForward {
  static constexpr int kThreads = 512;
  SoftmaxKind kind;
  const T* x;
  T* y;
  int64_t columns;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const T* const from = x + thread.block() * columns;
    T* const to = y + thread.block() * columns;
    T largest = -cuda::infinity<T>();
    for (int64_t c = thread.index(); c < columns; c += thread.count()) largest = std::fmax(largest, from[c]);
    largest = thread.reduce(largest, cuda::Largest{});
    if (largest == -cuda::infinity<T>()) largest = 0;  // all logits are -infinity: exp gives 0, not NaN
    T sum = 0;
    for (int64_t c = thread.index(); c < columns; c += thread.count()) sum += std::exp(from[c] - largest);
    sum = thread.reduce(sum, cuda::Sum{});
    const T log_sum = sum == 0 ? T{0} : std::log(sum), factor = sum == 0 ? T{0} : 1 / sum;
    for (int64_t c = thread.index(); c < columns; c += thread.count()) {
      const T shifted = from[c] - largest;
      to[c] = kind == SoftmaxKind::logarithms ? shifted - log_sum : std::exp(shifted) * factor;
    }
  }
};

// softmax: dx = y (dy - sum(y dy));  log_softmax: dx = dy - exp(y) sum(dy)
template <class T>
struct SoftmaxBackward {
  static constexpr int kThreads = 512;
  SoftmaxKind kind;
  const T* y;
  const T* dy;
  T* dx;
  int64_t columns;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t begin = thread.block() * columns;
    const bool logarithms = kind == SoftmaxKind::logarithms;
    T sum = 0;
    for (int64_t c = begin + thread.index(); c < begin + columns; c += thread.count())
      sum += logarithms ? dy[c] : y[c] * dy[c];
    sum = thread.reduce(sum, cuda::Sum{});
    for (int64_t c = begin + thread.index(); c < begin + columns; c += thread.count())
      dx[c] = logarithms ? dy[c] - std::exp(y[c]) * sum : y[c] * (dy[c] - sum);
  }
};

}  // namespace

void softmax_forward(Cuda device, SoftmaxKind kind, const Tensor& x, const Tensor& y) {
  const Rows size = as_rows(x);
  dispatch_floating("softmax", x.dtype(), [&]<class T>(T) {
    using Kernel = SoftmaxForward<T>;
    cuda::launch(device, "softmax",
                 {.blocks = size.rows, .threads = cuda::threads_for(size.columns, Kernel::kThreads, kElementsOfThread)},
                 Kernel{kind, x.data<T>(), y.data<T>(), size.columns});
  });
}

void softmax_backward(Cuda device, SoftmaxKind kind, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const Rows size = as_rows(y);
  dispatch_floating("softmax", y.dtype(), [&]<class T>(T) {
    using Kernel = SoftmaxBackward<T>;
    cuda::launch(device, "softmax",
                 {.blocks = size.rows, .threads = cuda::threads_for(size.columns, Kernel::kThreads, kElementsOfThread)},
                 Kernel{kind, y.data<T>(), dy.data<T>(), dx.data<T>(), size.columns});
  });
}

}  // namespace attune

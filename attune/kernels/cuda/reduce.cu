#include "attune/kernels/reduce.h"

#include "attune/kernels/cuda/launch.h"

namespace attune {
namespace {

constexpr int64_t kPiece = int64_t{1} << 16;  // elements of a block: the order of the sum depends on the size alone

template <class T>
struct SquaresOfPieces {
  static constexpr int kThreads = 512;
  const T* x;
  int64_t count;
  double* sums;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t begin = thread.block() * kPiece, end = count < begin + kPiece ? count : begin + kPiece;
    double sum = 0;
    for (int64_t i = begin + thread.index(); i < end; i += thread.count())
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sum = thread.reduce(sum, cuda::Sum{});
    if (thread.index() == 0) sums[thread.block()] = sum;
  }
};

struct SumOfPieces {
  static constexpr int kThreads = 512;
  const double* sums;
  int64_t count;
  double* total;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    double sum = 0;
    for (int64_t i = thread.index(); i < count; i += thread.count()) sum += sums[i];
    sum = thread.reduce(sum, cuda::Sum{});
    if (thread.index() == 0) *total = sum;
  }
};

}  // namespace

double sum_of_squares(Cuda device, const Tensor& x) {
  const int64_t count = x.numel(), pieces = (count + kPiece - 1) / kPiece;
  const Tensor sums = Tensor::empty({pieces + 1}, {DType::f64, Device(device)});
  double* const parts = sums.data<double>();
  dispatch_floating("sum_of_squares", x.dtype(), [&]<class T>(T) {
    using Kernel = SquaresOfPieces<T>;
    cuda::launch(device, "sum_of_squares", {.blocks = pieces, .threads = cuda::threads_for(count, Kernel::kThreads)},
                 Kernel{x.data<T>(), count, parts});
  });
  cuda::launch(device, "sum_of_squares", {.blocks = 1, .threads = cuda::threads_for(pieces, SumOfPieces::kThreads)},
               SumOfPieces{parts, pieces, parts + pieces});
  double total = 0;
  cuda::copy_to_host(device, parts + pieces, &total, sizeof(total));
  return total;
}

}  // namespace attune

#include "attune/kernels/reduce.h"

#include <vector>

#include "attune/base/rounding.h"
#include "attune/kernels/cuda/block_sum.h"
#include "attune/kernels/cuda/chunks.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

constexpr int64_t kChunk = int64_t{1} << 16;  // elements of a block: the order of the sum depends on the sizes alone
constexpr int kSumThreads = 512;

template <class T>
struct Entry {
  int64_t first, count;  // its first block, and its elements
  const T* x;
};

template <class T>
struct SquaresOfChunks {
  static constexpr int kThreads = kSumThreads;
  const Entry<T>* entries;
  int64_t entry_count;
  double* sums;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const Entry<T>& of = cuda::entry_of(entries, entry_count, thread.block());
    const cuda::ChunkRange chunk = cuda::chunk_of(of, thread.block(), kChunk);
    const T* const x = of.x + chunk.begin;
    const double sum = cuda::block_sum(thread, chunk.end - chunk.begin, [&](int64_t i) {
      return static_cast<double>(x[i]) * static_cast<double>(x[i]);
    });
    if (thread.index() == 0) sums[thread.block()] = sum;
  }
};

struct AddChunks {
  static constexpr int kThreads = kSumThreads;
  const double* sums;
  int64_t count;
  double* total;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const double sum = cuda::block_sum(thread, count, [&](int64_t i) { return sums[i]; });
    if (thread.index() == 0) *total += sum;
  }
};

}  // namespace

void add_squares(Cuda device, std::span<const Tensor> tensors, const Tensor& sum) {
  if (tensors.empty()) return;
  dispatch_floating("add_squares", tensors[0].dtype(), [&]<class T>(T) {
    std::vector<Entry<T>> entries;
    int64_t blocks = 0, longest = 0;
    for (const Tensor& x : tensors) {
      if (x.numel() == 0) continue;
      entries.push_back({blocks, x.numel(), x.data<T>()});
      blocks += divide_up(x.numel(), kChunk);
      longest = std::max(longest, x.numel());
    }
    const Tensor table = cuda::structs_on_device<Entry<T>>(device, entries);
    const Tensor sums = Tensor::empty({blocks}, {DType::f64, Device(device)});
    double* const parts = sums.data<double>();
    cuda::launch(device, "add_squares", {.blocks = blocks, .threads = cuda::threads_for(longest, kSumThreads)},
                 SquaresOfChunks<T>{static_cast<const Entry<T>*>(table.raw()), std::ssize(entries), parts});
    cuda::launch(device, "add_squares", {.blocks = 1, .threads = cuda::threads_for(blocks, kSumThreads)},
                 AddChunks{parts, blocks, sum.data<double>()});
  });
}

}  // namespace attune

#pragma once
// What a kernel sees of the machine: one thread of one block. A kernel is a struct with the arguments as members,
//
//   struct Double {                                            // one block for each row
//     static constexpr int kThreads = 256;                     // at most so many threads in a block
//     const float* x;
//     float* y;
//     int64_t columns;
//     ATTUNE_DEVICE void operator()(Thread& thread) const {
//       for (int64_t c = thread.index(); c < columns; c += thread.count()) ...
//     }
//   };
//
// and launch() (launch.h) runs it. Thread has
//
//   index(), count()      this thread in its block, and how many there are: a multiple of kWarp
//   block(), blocks()     this block in the grid, and how many there are
//   lane(), warp(), warps()
//   barrier()             waits for all threads of the block; every thread has to reach the same one
//   shared<T>(count)      an array that the block shares, uninitialised; every thread has to make the same calls in the
//                         same order, and LaunchShape::shared_bytes is the sum of their shared_bytes_of<T>(count)
//
//   copy_ahead(to, from, exists)
//                         starts to copy 16 bytes to shared memory, or zeros; both addresses are multiples of 16
//   wait_for_copies()     a barrier, at which the copies of all threads have ended
//
//   shuffle(value, lane), shuffle_xor(value, mask)
//                         the value of another thread of the warp; all threads take part
//   warp_reduce(value, op), reduce(value, op)
//                         op over the values of all threads of the warp, of the block, in a fixed order; every thread
//                         gets the result. op is commutative. All threads take part.
//
// rounded_product(a, b) is never fused with a sum; dot_of_bytes(a, b, sum) adds the products of four signed bytes.
// atomic_add(p, v) and atomic_min(p, v) return what *p was before. Results that depend on their order must be whole
// numbers: sums of floating-point numbers are formed in a fixed order.

#include "attune/kernels/cuda/runtime/platform.h"

#ifdef __CUDACC__
#include "attune/kernels/cuda/runtime/thread_device.h"
#else
#include "attune/kernels/cuda/runtime/thread_emulated.h"
#endif

namespace attune::cuda {

struct Sum {
  template <class T>
  ATTUNE_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

struct Largest {
  template <class T>
  ATTUNE_DEVICE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

}  // namespace attune::cuda

#pragma once
// Starts kernels: on the GPU in the device's stream, in the emulation at once.

#include <algorithm>

#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/kernels/cuda/runtime/thread.h"
#include "attune/tensor/device.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "attune/kernels/cuda/runtime/emulation.h"
#endif

namespace attune::cuda {

struct LaunchShape {
  int64_t blocks;
  int threads;  // of a block: a multiple of kWarp, at most the kernel's kThreads
  size_t shared_bytes = 0;
};

/// How many threads a block has that walks over `count` elements: one for every `each` elements, in whole warps, at
/// least one warp and at most `most` threads.
constexpr int threads_for(int64_t count, int most, int64_t each = 1) {
  const int64_t wanted = (count + each * kWarp - 1) / (each * kWarp) * kWarp;
  return static_cast<int>(std::clamp<int64_t>(wanted, kWarp, most));
}

/// A body of for_each_element() that can compute four elements at once: where has_fours() is true, fours(i) computes
/// elements i ... i + 3.
template <class Body>
concept WorksOnFours = requires(const Body& body) {
  body.fours(int64_t{});
  body.has_fours();
};

template <class Body>
ATTUNE_DEVICE void run_four(int64_t first, int64_t count, const Body& body) {
  if (first + 4 <= count) return body.fours(first);
  for (int64_t i = first; i < count; ++i) body(i);
}

#ifdef __CUDACC__

/// How many blocks of a kernel a multiprocessor shall hold at once: kBlocks of the kernel, or 1. The compiler limits
/// the registers of a thread accordingly.
template <class Kernel>
constexpr int blocks_at_once() {
  if constexpr (requires { Kernel::kBlocks; }) return Kernel::kBlocks;
  return 1;
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, blocks_at_once<Kernel>())
    run_kernel(const __grid_constant__ Kernel kernel) {
  Thread thread;
  kernel(thread);
}

template <class Body>
__global__ void __launch_bounds__(256) run_elements(int64_t count, const __grid_constant__ Body body) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) body(i);
}

template <class Body>
__global__ void __launch_bounds__(256) run_fours(int64_t count, const __grid_constant__ Body body) {
  run_four((static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * 4, count, body);
}

/// Starts kernel(thread) for each thread. `name` is the operation's, for errors. Throws DeviceError.
template <class Kernel>
void launch(Cuda device, const char* name, const LaunchShape& shape, const Kernel& kernel) {
  if (shape.blocks == 0) return;
  check_shape(device, name, shape.blocks, shape.threads, Kernel::kThreads);
  const size_t shared = kReduceBytes + shape.shared_bytes;
  allow_shared(device, name, reinterpret_cast<const void*>(&run_kernel<Kernel>), shared);
  run_kernel<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), shared,
               static_cast<cudaStream_t>(stream_of(device))>>>(kernel);
  check_launch(device, name);
}

/// Starts body(i) for i = 0 ... count - 1, each in a thread of its own; or body.fours(i), see WorksOnFours.
template <class Body>
void for_each_element(Cuda device, const char* name, int64_t count, const Body& body) {
  if (count == 0) return;
  const auto blocks = [](int64_t threads) { return static_cast<unsigned>((threads + 255) / 256); };
  const auto stream = static_cast<cudaStream_t>(stream_of(device));
  if constexpr (WorksOnFours<Body>) {
    if (body.has_fours()) {
      run_fours<<<blocks((count + 3) / 4), 256, 0, stream>>>(count, body);
      return check_launch(device, name);
    }
  }
  run_elements<<<blocks(count), 256, 0, stream>>>(count, body);
  check_launch(device, name);
}

#else

template <class Kernel>
void launch(Cuda device, const char* name, const LaunchShape& shape, const Kernel& kernel) {
  static_assert(Kernel::kThreads % kWarp == 0 && Kernel::kThreads <= kMostThreads);
  if (shape.blocks == 0) return;
  check_shape(device, name, shape.blocks, shape.threads, Kernel::kThreads);
  allow_shared(device, name, nullptr, kReduceBytes + shape.shared_bytes);
  emulate({name, shape.blocks, shape.threads, shape.shared_bytes}, [&](Thread& thread) { kernel(thread); });
  check_launch(device, name);
}

template <class Body>
void for_each_element(Cuda device, const char* name, int64_t count, const Body& body) {
  if constexpr (WorksOnFours<Body>) {
    if (body.has_fours()) {
      emulate_elements(name, (count + 3) / 4, [&](int64_t i) { run_four(4 * i, count, body); });
      return check_launch(device, name);
    }
  }
  emulate_elements(name, count, [&](int64_t i) { body(i); });
  check_launch(device, name);
}

#endif

}  // namespace attune::cuda

#pragma once
// Starts kernels: on the GPU in the device's stream, in the emulation at once.

#include <algorithm>

#include "attune/kernels/cuda/runtime.h"
#include "attune/kernels/cuda/thread.h"
#include "attune/tensor/device.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "attune/kernels/cuda/emulation.h"
#endif

namespace attune::cuda {

struct LaunchShape {
  int64_t blocks;
  int threads;  // of a block: a multiple of kWarp, at most the kernel's kThreads
  size_t shared_bytes = 0;
};

/// Threads of a block that walks over `count` elements: `each` or more elements for a thread, from one warp to `most`.
constexpr int threads_for(int64_t count, int most, int64_t each = 1) {
  const int64_t wanted = (count + each * kWarp - 1) / (each * kWarp) * kWarp;
  return static_cast<int>(std::clamp<int64_t>(wanted, kWarp, most));
}

#ifdef __CUDACC__

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) run_kernel(const __grid_constant__ Kernel kernel) {
  Thread thread;
  kernel(thread);
}

template <class Body>
__global__ void __launch_bounds__(256) run_elements(int64_t count, const __grid_constant__ Body body) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < count) body(i);
}

/// Starts kernel(thread) for each thread. `name` is the operation's, for errors. Throws DeviceError.
template <class Kernel>
void launch(Cuda device, const char* name, const LaunchShape& shape, const Kernel& kernel) {
  if (shape.blocks == 0) return;
  const size_t shared = kReduceBytes + shape.shared_bytes;
  allow_shared(device, name, reinterpret_cast<const void*>(&run_kernel<Kernel>), shared);
  run_kernel<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), shared,
               static_cast<cudaStream_t>(stream_of(device))>>>(kernel);
  check_launch(device, name);
}

/// Starts body(i) for i = 0 ... count - 1, each in a thread of its own.
template <class Body>
void for_each_element(Cuda device, const char* name, int64_t count, const Body& body) {
  if (count == 0) return;
  run_elements<<<static_cast<unsigned>((count + 255) / 256), 256, 0, static_cast<cudaStream_t>(stream_of(device))>>>(
      count, body);
  check_launch(device, name);
}

#else

template <class Kernel>
void launch(Cuda device, const char* name, const LaunchShape& shape, const Kernel& kernel) {
  static_assert(Kernel::kThreads % kWarp == 0 && Kernel::kThreads <= kMostThreads);
  if (shape.blocks == 0) return;
  allow_shared(device, name, nullptr, kReduceBytes + shape.shared_bytes);
  emulate({name, shape.blocks, std::min(shape.threads, Kernel::kThreads), shape.shared_bytes},
          [&](Thread& thread) { kernel(thread); });
  check_launch(device, name);
}

template <class Body>
void for_each_element(Cuda device, const char* name, int64_t count, const Body& body) {
  emulate_elements(name, count, [&](int64_t i) { body(i); });
  check_launch(device, name);
}

#endif

}  // namespace attune::cuda

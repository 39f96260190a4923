#pragma once
// Kernels are written once. nvcc compiles them for the GPU; the compiler of the host compiles them for tests, where
// emulation.h runs their threads. This file has all that differs between the two in the source of a kernel.

#ifdef __CUDACC__
#define ATTUNE_DEVICE __device__ __forceinline__
#define ATTUNE_HOST_DEVICE __host__ __device__ __forceinline__
#define ATTUNE_UNROLL _Pragma("unroll")
#else
#define ATTUNE_DEVICE inline
#define ATTUNE_HOST_DEVICE inline
#define ATTUNE_UNROLL
#endif

#include <cstddef>
#include <cstdint>

namespace attune::cuda {

constexpr int kWarp = 32;           // threads that run together and exchange values without a barrier
constexpr int kMostThreads = 1024;  // of a block
constexpr size_t kSharedAlignment = 16;

// Each block has kReduceBytes of shared memory beside what it asks for: Thread::reduce keeps a value of every warp
// there.
constexpr size_t kMostReduced = 16;  // bytes of such a value
constexpr size_t kReduceBytes = kMostThreads / kWarp * kMostReduced;

/// Bytes of shared memory that an array of `count` takes, for LaunchShape::shared_bytes.
template <class T>
constexpr size_t shared_bytes_of(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(T) + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

}  // namespace attune::cuda

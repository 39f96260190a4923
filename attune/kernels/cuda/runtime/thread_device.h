#pragma once
// The thread of a kernel on a GPU. See thread.h.

#include <cuda_runtime.h>

#include <cstring>

#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

template <class T>
class SharedArray {
 public:
  __device__ explicit SharedArray(T* data) : data_(data) {}
  __device__ __forceinline__ T& operator[](int64_t i) const { return data_[i]; }
  __device__ SharedArray part(int64_t begin, int64_t /*count*/) const { return SharedArray(data_ + begin); }

 private:
  T* data_;
};

class Thread {
 public:
  __device__ Thread() : used_(kReduceBytes) {}

  __device__ __forceinline__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int count() const { return static_cast<int>(blockDim.x); }
  __device__ __forceinline__ int64_t block() const { return blockIdx.x; }
  __device__ __forceinline__ int64_t blocks() const { return gridDim.x; }
  __device__ __forceinline__ int lane() const { return index() % kWarp; }
  __device__ __forceinline__ int warp() const { return index() / kWarp; }
  __device__ __forceinline__ int warps() const { return count() / kWarp; }

  __device__ __forceinline__ void barrier() const { __syncthreads(); }

  template <class T>
  __device__ __forceinline__ SharedArray<T> shared(int64_t count) {
    T* const begin = reinterpret_cast<T*>(memory() + used_);
    used_ += shared_bytes_of<T>(count);
    return SharedArray<T>(begin);
  }

  __device__ __forceinline__ void copy_ahead(void* to, const void* from, bool exists) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                   "r"(exists ? 16 : 0)
                 : "memory");
  }
  __device__ __forceinline__ void wait_for_copies() const {
    asm volatile("cp.async.wait_all;" : : : "memory");
    __syncthreads();
  }

  template <class T>
  __device__ __forceinline__ T shuffle(const T& value, int lane) const {
    return exchange(value, [=](unsigned word) { return __shfl_sync(0xffffffffu, word, lane); });
  }
  template <class T>
  __device__ __forceinline__ T shuffle_xor(const T& value, int mask) const {
    return exchange(value, [=](unsigned word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
  }

  template <class T, class Op>
  __device__ __forceinline__ T warp_reduce(T value, Op op) const {
#pragma unroll
    for (int mask = 1; mask < kWarp; mask *= 2) value = op(value, shuffle_xor(value, mask));
    return value;
  }

  template <class T, class Op>
  __device__ __forceinline__ T reduce(T value, Op op) const {
    static_assert(sizeof(T) <= kMostReduced);
    value = warp_reduce(value, op);
    if (count() == kWarp) return value;
    T* const values = reinterpret_cast<T*>(memory());
    if (lane() == 0) values[warp()] = value;
    __syncthreads();
    T all = values[0];
    for (int i = 1; i < warps(); ++i) all = op(all, values[i]);
    __syncthreads();
    return all;
  }

 private:
  __device__ __forceinline__ static unsigned char* memory() {
    extern __shared__ __align__(16) unsigned char attune_shared_memory[];
    return attune_shared_memory;
  }

  // Calls f with each 32 bits of the value.
  template <class T, class F>
  __device__ __forceinline__ static T exchange(const T& value, F f) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    unsigned words[kWords] = {};
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = f(words[i]);
    T result;
    memcpy(&result, words, sizeof(T));
    return result;
  }

  size_t used_;
};

/// a * b, rounded: never one operation with a sum that follows.
__device__ __forceinline__ float rounded_product(float a, float b) {
  return __fmul_rn(a, b);
}

/// sum + the products of the four signed bytes of a and b.
__device__ __forceinline__ int32_t dot_of_bytes(int32_t a, int32_t b, int32_t sum) {
  return __dp4a(a, b, sum);
}

template <class T>
__device__ __forceinline__ T atomic_add(T* to, T value) {
  return atomicAdd(to, value);
}
template <class T>
__device__ __forceinline__ T atomic_min(T* to, T value) {
  return atomicMin(to, value);
}

}  // namespace attune::cuda

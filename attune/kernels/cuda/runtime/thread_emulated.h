#pragma once
// The thread of a kernel in the emulation. See thread.h.

#include <array>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

class EmulatedBlock;

/// Throws DeviceError: index i is outside of a shared array with `count` elements.
[[noreturn]] void fail_outside(int64_t i, int64_t count);

/// An array in the memory of a block; an index outside of it is an error.
template <class T>
class SharedArray {
 public:
  SharedArray(T* data, int64_t count) : data_(data), count_(count) {}
  T& operator[](int64_t i) const {
    if (i < 0 || i >= count_) fail_outside(i, count_);
    return data_[i];
  }
  SharedArray part(int64_t begin, int64_t count) const {
    if (begin < 0 || count < 0 || begin + count > count_) fail_outside(begin + count, count_);
    return {data_ + begin, count};
  }

 private:
  T* data_;
  int64_t count_;
};

class Thread {
 public:
  Thread(EmulatedBlock& block, int index) : block_(block), index_(index) {}

  int index() const { return index_; }
  int count() const;
  int64_t block() const;
  int64_t blocks() const;
  int lane() const { return index() % kWarp; }
  int warp() const { return index() / kWarp; }
  int warps() const { return count() / kWarp; }

  void barrier(std::source_location at = std::source_location::current());

  void copy_ahead(void* to, const void* from, bool exists) const;  // copies at once
  void wait_for_copies(std::source_location at = std::source_location::current()) { barrier(at); }

  template <class T>
  SharedArray<T> shared(int64_t count) {
    return {static_cast<T*>(take_shared(shared_bytes_of<T>(count))), count};
  }

  template <class T>
  T shuffle(const T& value, int lane) {
    return exchanged(value, [&](const std::array<T, kWarp>& all) { return all[static_cast<size_t>(lane % kWarp)]; });
  }
  template <class T>
  T shuffle_xor(const T& value, int mask) {
    return shuffle(value, lane() ^ mask);
  }
  template <class T, class Op>
  T warp_reduce(T value, Op op) {
    return exchanged(value, [&](std::array<T, kWarp>& all) {
      for (size_t mask = 1; mask < kWarp; mask *= 2)
        for (size_t i = 0; i < kWarp; i += 2 * mask) all[i] = op(all[i], all[i + mask]);
      return all[0];
    });
  }
  template <class T, class Op>
  T reduce(T value, Op op) {
    static_assert(sizeof(T) <= kMostReduced);
    value = warp_reduce(value, op);
    if (count() == kWarp) return value;
    T* const values = static_cast<T*>(reduce_memory());
    if (lane() == 0) values[warp()] = value;
    barrier();
    T all = values[0];
    for (int i = 1; i < warps(); ++i) all = op(all, values[i]);
    barrier();
    return all;
  }

 private:
  void* take_shared(size_t bytes);
  void* reduce_memory();
  // A barrier for the threads of a warp.
  void warp_barrier(std::source_location at = std::source_location::current());
  // Where this warp exchanges values: kMostReduced bytes for each of its threads.
  std::byte* exchange_memory();

  // Calls f with the values of all threads of the warp.
  template <class T, class F>
  T exchanged(const T& value, F&& f) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMostReduced);
    std::byte* const memory = exchange_memory();
    std::memcpy(memory + static_cast<size_t>(lane()) * kMostReduced, &value, sizeof(T));
    warp_barrier();
    std::array<T, kWarp> all;
    for (size_t i = 0; i < kWarp; ++i) std::memcpy(&all[i], memory + i * kMostReduced, sizeof(T));
    warp_barrier();
    return f(all);
  }

  EmulatedBlock& block_;
  int index_;
  size_t used_ = 0;
};

inline float rounded_product(float a, float b) {
  return a * b;  // sources that call this are compiled without fused operations
}
inline int32_t dot_of_bytes(int32_t a, int32_t b, int32_t sum) {
  for (int shift = 0; shift < 32; shift += 8) sum += static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
  return sum;
}

template <class T>
T atomic_add(T* to, T value) {
  const T before = *to;
  *to = before + value;
  return before;
}
template <class T>
T atomic_min(T* to, T value) {
  const T before = *to;
  if (value < before) *to = value;
  return before;
}

}  // namespace attune::cuda

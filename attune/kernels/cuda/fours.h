#pragma once
// Four neighbours in memory at once. With one number at a time, a thread has too few bytes on their way to keep the
// memory of a GPU busy.

#include <cstdint>
#include <type_traits>

#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

template <class T>
struct [[gnu::may_alias]] alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T value[4];
};

/// Whether x[0], x[4], x[8], ... can be read as Four. Null can.
template <class T>
ATTUNE_HOST_DEVICE bool has_fours(const T* x) {
  return reinterpret_cast<uintptr_t>(x) % alignof(Four<T>) == 0;
}

/// x[i] ... x[i + 3]; i is a multiple of 4, and has_fours(x).
template <class T>
ATTUNE_DEVICE Four<T> read_four(const T* x, int64_t i) {
  return *reinterpret_cast<const Four<T>*>(x + i);
}
template <class T>
ATTUNE_DEVICE void write_four(T* x, int64_t i, const Four<T>& values) {
  *reinterpret_cast<Four<T>*>(x + i) = values;
}

/// A single number, for memory that cannot be read as Fours.
template <class T>
struct One {
  T value[1];
};

/// x[i], ... as a Group, which is One<T> or Four<T>.
template <class Group, class T>
ATTUNE_DEVICE Group read_group(const T* x, int64_t i) {
  if constexpr (std::is_same_v<Group, Four<T>>)
    return read_four(x, i);
  else
    return {{x[i]}};
}
template <class T>
ATTUNE_DEVICE void write_group(T* x, int64_t i, const One<T>& values) {
  x[i] = values.value[0];
}
template <class T>
ATTUNE_DEVICE void write_group(T* x, int64_t i, const Four<T>& values) {
  write_four(x, i, values);
}

}  // namespace attune::cuda

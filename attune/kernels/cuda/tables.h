#pragma once
// What the host describes (offsets, slots, lists) in the memory of a device, for a kernel.

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune::cuda {

/// A copy of the values: int32 [values.size()].
inline Tensor on_device(Cuda device, std::span<const int32_t> values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, values, Device(device));
}

/// A copy of trivially copyable structs, as bytes.
template <class T>
Tensor structs_on_device(Cuda device, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return Tensor::from_bytes({static_cast<int64_t>(bytes.size())}, DType::u8, bytes, Device(device));
}

/// Arrays of trivially copyable structs in one copy to the device: add() each of them, then copy_to(), then at().
class PackedTables {
 public:
  /// Returns what at() takes for this array.
  template <class T>
  size_t add(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const size_t begin = bytes_.size();
    const auto added = std::as_bytes(values);
    bytes_.insert(bytes_.end(), added.begin(), added.end());
    return begin;
  }
  void copy_to(Cuda device) { copy_ = structs_on_device<std::byte>(device, bytes_); }
  /// The array in the memory of the device, while this object lives.
  template <class T>
  const T* at(size_t begin) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(copy_.raw()) + begin);
  }

 private:
  std::vector<std::byte> bytes_;
  Tensor copy_;
};

}  // namespace attune::cuda

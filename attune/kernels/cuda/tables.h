#pragma once
// What the host describes (offsets, slots, lists) in the memory of a device, for a kernel.

#include <span>

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

}  // namespace attune::cuda

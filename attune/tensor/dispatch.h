#pragma once

#include <utility>

#include "attune/tensor/built_devices.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device.h"

namespace attune {

/// Calls f with the device's own type, which selects overloads like softmax_forward(Cpu, ...). An operation calls this
/// at its outermost point: everything in f runs on the device.
template <class F>
decltype(auto) dispatch(const Device& device, F&& f) {
  if constexpr (kBuiltWithCuda) {
    if (device.kind() == Device::Kind::cuda) {
      const Cuda cuda{device.index()};
      const CudaScope scope(cuda);
      return std::forward<F>(f)(cuda);
    }
  }
  if (device.kind() == Device::Kind::cpu) return std::forward<F>(f)(Cpu{});
  const PlainAccess access;
  return std::forward<F>(f)(Plain{});
}

}  // namespace attune

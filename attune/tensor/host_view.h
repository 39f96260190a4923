#pragma once

#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

/// The values of a tensor in memory that the host can read: the tensor's own memory on the CPU, a copy from another
/// device. The view keeps this memory alive.
class HostView {
 public:
  explicit HostView(const Tensor& x);
  /// The values. Throws ShapeError when T is not the dtype.
  template <class T>
  std::span<const T> as() const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void check(DType wanted) const;

  Tensor tensor_;  // on the CPU
  std::span<const std::byte> bytes_;
};

/// Returns the numbers of several tensors, one after the other, as one float64 tensor on a device: [their total count].
/// The host can then read all of them with one copy, for which it waits once.
Tensor joined_numbers(const std::vector<Tensor>& parts, const Device& device);

/// The values of a tensor in a vector. Throws ShapeError when T is not the dtype.
template <class T>
std::vector<T> host_values(const Tensor& x) {
  const HostView view(x);
  const auto values = view.template as<T>();
  return {values.begin(), values.end()};
}

}  // namespace attune

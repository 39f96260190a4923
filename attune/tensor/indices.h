#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Token ids, labels, positions or row numbers: int32 values made by the host. The host reads and checks them; a kernel
/// gets them as a tensor on its device, copied there once. Cheap to copy; the values never change.
class Indices {
 public:
  Indices() = default;                   // none
  Indices(std::vector<int32_t> values);  // NOLINT: a list of numbers is indices
  Indices(std::initializer_list<int32_t> values) : Indices(std::vector<int32_t>(values)) {}
  explicit Indices(std::span<const int32_t> values) : Indices(std::vector<int32_t>(values.begin(), values.end())) {}

  int64_t size() const { return end_ - begin_; }
  bool empty() const { return size() == 0; }
  std::span<const int32_t> values() const;
  int32_t operator[](int64_t i) const { return values()[static_cast<size_t>(i)]; }
  /// The indices [begin, end), sharing the memory. Throws ShapeError.
  Indices slice(int64_t begin, int64_t end) const;
  /// The indices as a tensor on a device: int32 [size].
  Tensor on(const Device& device) const;
  /// Starts the copy to a device, which goes on beside the device's work, see Tensor::send_bytes(); on() then finds it.
  void send(const Device& device) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  int64_t begin_ = 0, end_ = 0;
};

}  // namespace attune

#pragma once
// The memory of a cache: rows in blocks that never move.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Slot s is row s % kBlockRows of block s / kBlockRows. Copies share the blocks.
class Pages {
 public:
  static constexpr int64_t kBlockRows = 256;

  Pages() = default;
  Pages(int64_t width, DType dtype) : width_(width), dtype_(dtype) {}

  /// The number of slots that have memory.
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kBlockRows; }
  int64_t width() const { return width_; }
  DType dtype() const { return dtype_; }
  /// The device of the blocks; the CPU while there is no block.
  Device device() const { return blocks_.empty() ? Device() : blocks_.front().device(); }
  /// Adds one uninitialised block.
  void add_block(const Device& device) {
    blocks_.push_back(Tensor::empty({kBlockRows, width_}, {dtype_, device}));
    starts_.push_back(static_cast<std::byte*>(blocks_.back().raw()));
  }
  /// For kernels: where the row of a slot begins in the memory of the device. T is the type of the dtype.
  template <class T>
  T* row(int64_t slot) const {
    const auto s = static_cast<uint64_t>(slot);  // so that the division is a shift
    return reinterpret_cast<T*>(starts_[s / kBlockRows]) + static_cast<int64_t>(s % kBlockRows) * width_;
  }

 private:
  int64_t width_ = 0;
  DType dtype_ = DType::f32;
  std::vector<Tensor> blocks_;  // [kBlockRows, width] each
  std::vector<std::byte*>
      starts_;  // of the blocks, in the order of slots, so that a decoding step does not have to list them
};

}  // namespace attune

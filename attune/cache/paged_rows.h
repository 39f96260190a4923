#pragma once
// The memory of a cache.

#include <cstddef>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

/// Rows in blocks that never move: a cache grows without copying. A row is known by its slot, and may be overwritten.
class PagedRows {
 public:
  PagedRows() = default;
  explicit PagedRows(int64_t width, DType dtype = DType::f32) : width_(width), dtype_(dtype) {}

  /// Copies rows [n, width] to the end; returns the slot of the first.
  int64_t append(const Tensor& rows);
  /// Row i of rows [n, width] becomes slots[i], which may be one that is not there yet.
  void write(const Tensor& rows, std::span<const int32_t> slots);
  int64_t size() const { return size_; }  // the highest slot + 1
  int64_t width() const { return width_; }
  int64_t row_bytes() const { return width_ * static_cast<int64_t>(size_of(dtype_)); }
  int64_t bytes() const { return size_ * row_bytes(); }
  DType dtype() const { return dtype_; }
  template <class T>
  const T* row(int64_t slot) const {
    return reinterpret_cast<const T*>(starts_[static_cast<size_t>(slot) / kBlockRows]) + slot % kBlockRows * width_;
  }

 private:
  void check_rows(const Tensor& rows) const;
  void add_block();
  static constexpr int64_t kBlockRows = 256;
  int64_t width_ = 0;
  int64_t size_ = 0;
  DType dtype_ = DType::f32;
  std::vector<Tensor> blocks_;      // of kBlockRows rows each
  std::vector<std::byte*> starts_;  // of the blocks
};

}  // namespace attune

#pragma once
// The memory of a cache.

#include <cstdint>
#include <span>

#include "attune/kernels/attention/pages.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Rows in blocks that never move, so a cache grows without copying. A slot is the index of a row, which may be
/// overwritten. The blocks are on the device of the first rows that are written.
class PagedRows {
 public:
  PagedRows() = default;
  explicit PagedRows(int64_t width, DType dtype = DType::f32) : pages_(width, dtype) {}

  /// Appends rows [n, width]; returns the slot of the first. Throws ShapeError.
  int64_t append(const Tensor& rows);
  /// Copies row i of rows [n, width] to slots[i]; slots that do not exist yet are added. Throws ShapeError.
  void write(const Tensor& rows, std::span<const int32_t> slots);
  /// Returns columns [begin, end) of the rows in `slots`, in their order: [slots, end - begin]. Throws ShapeError.
  Tensor gather(std::span<const int32_t> slots, int64_t begin, int64_t end) const;
  int64_t size() const { return size_; }  // the highest slot + 1
  int64_t width() const { return pages_.width(); }
  int64_t row_bytes() const { return width() * static_cast<int64_t>(size_of(dtype())); }
  int64_t bytes() const { return size_ * row_bytes(); }
  DType dtype() const { return pages_.dtype(); }
  const Pages& pages() const { return pages_; }

 private:
  int64_t size_ = 0;
  Pages pages_;
};

}  // namespace attune

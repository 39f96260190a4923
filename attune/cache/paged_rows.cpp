#include "attune/cache/paged_rows.h"

#include <algorithm>
#include <cstring>

#include "attune/base/fail.h"

namespace attune {

void PagedRows::check_rows(const Tensor& rows) const {
  if (rows.rank() != 2 || rows.size(1) != width_ || rows.dtype() != dtype_)
    fail<ShapeError>("cache: takes rows of {} {}, found {} {}", width_, name_of(dtype_), name_of(rows.dtype()),
                     rows.shape().text());
}

void PagedRows::add_block() {
  blocks_.push_back(Tensor::empty({kBlockRows, width_}, {.dtype = dtype_}));
  starts_.push_back(static_cast<std::byte*>(blocks_.back().raw()));
}

void PagedRows::write(const Tensor& rows, std::span<const int32_t> slots) {
  check_rows(rows);
  if (rows.size(0) != static_cast<int64_t>(slots.size()))
    fail<ShapeError>("cache: {} rows for {} slots", rows.size(0), slots.size());
  const size_t bytes = static_cast<size_t>(width_) * size_of(dtype_);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t slot = slots[i];
    if (slot < 0) fail<ShapeError>("cache: slot {}", slot);
    while (slot >= static_cast<int64_t>(blocks_.size()) * kBlockRows) add_block();
    std::memcpy(starts_[static_cast<size_t>(slot / kBlockRows)] + static_cast<size_t>(slot % kBlockRows) * bytes,
                static_cast<const std::byte*>(rows.raw()) + i * bytes, bytes);
    size_ = std::max(size_, slot + 1);
  }
}

int64_t PagedRows::append(const Tensor& rows) {
  check_rows(rows);
  const int64_t first = size_;
  int64_t done = 0;
  while (done < rows.size(0)) {
    const int64_t place = size_ % kBlockRows;
    if (size_ == static_cast<int64_t>(blocks_.size()) * kBlockRows) add_block();
    const int64_t count = std::min(kBlockRows - place, rows.size(0) - done);
    blocks_[static_cast<size_t>(size_ / kBlockRows)]
        .rows(place, place + count)
        .copy_from(rows.rows(done, done + count));
    size_ += count;
    done += count;
  }
  return first;
}

}  // namespace attune

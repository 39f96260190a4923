#include "attune/cache/paged_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attune/base/fail.h"
#include "attune/kernels/attention/page_rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

void PagedRows::write(const Tensor& rows, std::span<const int32_t> slots) {
  if (rows.rank() != 2 || rows.size(1) != width() || rows.dtype() != dtype())
    fail<ShapeError>("cache: takes rows of {} {}, found {} {}", width(), name_of(dtype()), name_of(rows.dtype()),
                     rows.shape().text());
  if (rows.size(0) != static_cast<int64_t>(slots.size()))
    fail<ShapeError>("cache: {} rows for {} slots", rows.size(0), slots.size());
  if (slots.empty()) return;
  const auto [least, most] = std::minmax_element(slots.begin(), slots.end());
  if (*least < 0) fail<ShapeError>("cache: slot {} is negative", *least);
  if (pages_.capacity() > 0 && rows.device() != pages_.device())
    fail<ShapeError>("cache: is on {}, found rows on {}", pages_.device().text(), rows.device().text());
  while (*most >= pages_.capacity()) pages_.add_block(rows.device());
  dispatch(rows.device(), [&](auto device) { write_rows(device, rows, slots, pages_); });
  size_ = std::max(size_, int64_t{*most} + 1);
}

int64_t PagedRows::append(const Tensor& rows) {
  const int64_t first = size_;
  std::vector<int32_t> slots(static_cast<size_t>(rows.rank() > 0 ? rows.size(0) : 0));
  std::iota(slots.begin(), slots.end(), static_cast<int32_t>(first));
  write(rows, slots);
  return first;
}

Tensor PagedRows::gather(std::span<const int32_t> slots, int64_t begin, int64_t end) const {
  if (begin < 0 || end < begin || end > width())
    fail<ShapeError>("cache: columns [{}, {}) do not lie in rows of {} numbers", begin, end, width());
  for (const int32_t slot : slots)
    if (slot < 0 || slot >= size_) fail<ShapeError>("cache: slot {}, there are {}", slot, size_);
  const Tensor rows = Tensor::empty({static_cast<int64_t>(slots.size()), end - begin}, {dtype(), pages_.device()});
  dispatch(pages_.device(), [&](auto device) { gather_rows(device, pages_, slots, begin, rows); });
  return rows;
}

}  // namespace attune

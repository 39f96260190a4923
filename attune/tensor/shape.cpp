#include "attune/tensor/shape.h"

#include <algorithm>

#include "attune/base/fail.h"

namespace attune {

Shape::Shape(std::span<const int64_t> sizes) {
  if (sizes.size() > kMaxRank)
    fail<ShapeError>("shape: {} dimensions, at most {} are possible", sizes.size(), kMaxRank);
  constexpr int64_t kMaxElements = int64_t{1} << 48;
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (size < 0) fail<ShapeError>("shape: dimension {} has negative size {}", rank_, size);
    if (size > 0 && elements > kMaxElements / size)
      fail<ShapeError>("shape: more than {} elements with dimension {} of size {}", kMaxElements, rank_, size);
    elements *= std::max<int64_t>(size, 1);
    sizes_[static_cast<size_t>(rank_++)] = size;
  }
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (const int64_t size : *this) product *= size;
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::text() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes_[static_cast<size_t>(i)]);
  return text + "]";
}

}  // namespace attune

#pragma once
// The shape of a tensor: up to six dimensions, row-major, no allocation.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace [[gnu::visibility("default")]] attune {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  /// Throws ShapeError for a negative size, more than kMaxRank dimensions, or more elements than 2^48.
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return sizes_[static_cast<size_t>(dim < 0 ? dim + rank_ : dim)]; }
  int64_t numel() const;
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  bool operator==(const Shape& other) const;
  std::string text() const;  // "[37, 512]"

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace attune

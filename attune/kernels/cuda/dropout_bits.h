#pragma once
// Dropout's masks in kernels: those of keep_mask() (attune/kernels/dropout_mask.h).

#include "attune/kernels/cuda/runtime/platform.h"
#include "attune/kernels/dropout_mask.h"

namespace attune::cuda {

/// The high half of a * b.
ATTUNE_DEVICE uint32_t high_product(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
}

/// Four random words decide about four columns of a row that are 16 apart, a quad: quad 16 g + j of a row has the
/// columns 64 g + j, 64 g + j + 16, 64 g + j + 32 and 64 g + j + 48.
constexpr int kQuad = 4;
constexpr int64_t kQuadStride = 16;

constexpr int64_t quads_of(int64_t columns) {
  return (columns + 63) / 64 * 16;
}
ATTUNE_HOST_DEVICE int64_t first_column(int64_t quad) {
  return quad / 16 * 64 + quad % 16;
}

/// Calls f(column, kept) for the columns of a quad that a row of `columns` has. Bit i of `bits` says whether the one in
/// place i is kept.
template <class F>
ATTUNE_DEVICE void for_columns_of_quad(int64_t columns, int64_t quad, unsigned bits, F&& f) {
  for (int i = 0; i < kQuad; ++i) {
    const int64_t column = first_column(quad) + i * kQuadStride;
    if (column >= columns) return;
    f(column, (bits >> i & 1u) != 0);
  }
}

class DropoutBits {
 public:
  explicit DropoutBits(const DropoutMask& mask)
      : active_(mask.active()),
        op_(mask.op),
        threshold_(mask.threshold()),
        key_(mask.key()),
        scale_(mask.active() ? mask.scale() : 1) {}

  ATTUNE_DEVICE bool active() const { return active_; }
  ATTUNE_DEVICE double scale() const { return scale_; }

  /// Returns the `bits` of a quad that for_columns_of_quad() takes.
  ATTUNE_DEVICE unsigned quad(int64_t row, int64_t quad) const {
    if (!active_) return 15;
    uint32_t c0 = static_cast<uint32_t>(quad), c1 = static_cast<uint32_t>(row), c2 = op_,
             c3 = static_cast<uint32_t>(static_cast<uint64_t>(row) >> 32);
    uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {  // Philox 4x32-10, see base/random.h
      const uint32_t high_0 = high_product(0xD2511F53u, c0), low_0 = 0xD2511F53u * c0;
      const uint32_t high_1 = high_product(0xCD9E8D57u, c2), low_1 = 0xCD9E8D57u * c2;
      c0 = high_1 ^ c1 ^ k0;
      c1 = low_1;
      c2 = high_0 ^ c3 ^ k1;
      c3 = low_0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return (c0 >= threshold_ ? 1u : 0u) | (c1 >= threshold_ ? 2u : 0u) | (c2 >= threshold_ ? 4u : 0u) |
           (c3 >= threshold_ ? 8u : 0u);
  }

 private:
  bool active_;
  uint32_t op_, threshold_;
  uint64_t key_;
  double scale_;
};

}  // namespace attune::cuda

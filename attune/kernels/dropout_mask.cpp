#include "attune/kernels/dropout_mask.h"

#include "attune/base/random.h"

namespace attune {

bool keep_mask(const DropoutMask& mask, int64_t row, int64_t column) {
  if (!mask.active()) return true;
  const auto r = static_cast<uint64_t>(row);
  const auto c = static_cast<uint64_t>(column);
  const auto words = philox(
      {static_cast<uint32_t>(c / 64 * 16 + c % 16), static_cast<uint32_t>(r), mask.op, static_cast<uint32_t>(r >> 32)},
      mask.key());
  return words[c % 64 / 16] >= mask.threshold();
}

}  // namespace attune

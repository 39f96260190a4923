#include "attune/nn/dropout.h"

#include "attune/base/check.h"
#include "attune/base/execution.h"

namespace attune {

Dropout::Dropout(double probability) : probability_(probability) {
  check_below_one("dropout", probability);
}

DropoutMask Dropout::mask() const {
  const std::optional<DropoutStep>& now = execution().dropout;
  return now ? DropoutMask{probability_, now->seed, now->step, index_} : DropoutMask{};
}

}  // namespace attune

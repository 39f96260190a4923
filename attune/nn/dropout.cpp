#include "attune/nn/dropout.h"

#include "attune/base/check.h"
#include "attune/base/execution.h"

namespace attune {

Dropout::Dropout(double probability) {
  set_probability(probability);
}

void Dropout::set_probability(double probability) {
  check_below_one("dropout", probability);
  probability_ = probability;
}

DropoutMask Dropout::mask() const {
  const std::optional<DropoutStep>& now = execution().dropout;
  constexpr int kIndexBits = 20;  // no model has more dropouts
  return now ? DropoutMask{probability_, now->seed, now->step, index_ ^ now->use << kIndexBits} : DropoutMask{};
}

}  // namespace attune

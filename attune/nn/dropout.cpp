#include "attune/nn/dropout.h"

#include "attune/base/check.h"

namespace attune {

Dropout::Dropout(double probability) : probability_(probability) {
  check_below_one("dropout", probability);
}

}  // namespace attune

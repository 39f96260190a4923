#include "attune/nn/dropout.h"

namespace attune {

Dropout::Dropout(double probability) : probability_(probability) {
  if (!(probability >= 0 && probability < 1))
    fail<ConfigError>("dropout = {}: needs a number from 0 to below 1", probability);
}

}  // namespace attune

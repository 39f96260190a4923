#include "attune/nn/input_embedding.h"

#include <cmath>

namespace attune {

InputEmbedding::InputEmbedding(const Tensor& table, bool scale)
    : weight_{.tensor = table, .use = ParameterUse::lookup},
      scale_(scale ? std::sqrt(static_cast<double>(table.size(1))) : 1.0) {}

}  // namespace attune

#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// exp(x) / sum(exp(x)) over the last dimension. A row of only -inf gives zeros. Same shape; differentiable.
Tensor softmax(const Tensor& x);

/// x - log(sum(exp(x))) over the last dimension. A row of only -inf gives -inf. Same shape; differentiable.
Tensor log_softmax(const Tensor& x);

}  // namespace attune

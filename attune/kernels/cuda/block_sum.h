#pragma once
// Sums that a block forms.

#include "attune/kernels/cuda/runtime/thread.h"

namespace attune::cuda {

/// The sum of term(i) for i = 0 ... count - 1. All threads of the block take part, and each gets the sum. Its order
/// depends on `count` and the number of threads alone.
template <class Term>
ATTUNE_DEVICE double block_sum(Thread& thread, int64_t count, const Term& term) {
  double own = 0;
  for (int64_t i = thread.index(); i < count; i += thread.count()) own += term(i);
  return thread.reduce(own, Sum{});
}

}  // namespace attune::cuda

#pragma once
// One launch for tensors of many sizes: a block has a chunk of one of them.

#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

/// Returns the entry of the tensor that a block works on. Entry::first is the number of the first block of a tensor;
/// entries are in that order, and the first one begins with block 0.
template <class Entry>
ATTUNE_DEVICE const Entry& entry_of(const Entry* entries, int64_t count, int64_t block) {
  int64_t begin = 0, end = count;  // entries[begin].first <= block
  while (end - begin > 1) {
    const int64_t middle = (begin + end) / 2;
    if (entries[middle].first <= block) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return entries[begin];
}

}  // namespace attune::cuda

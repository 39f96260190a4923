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

struct ChunkRange {
  int64_t begin, end;
};

/// The elements of its tensor that a block works on: a chunk has `size` of them, the last one fewer. Entry::count is
/// the number of a tensor's elements.
template <class Entry>
ATTUNE_DEVICE ChunkRange chunk_of(const Entry& entry, int64_t block, int64_t size) {
  const int64_t begin = (block - entry.first) * size;
  return {begin, entry.count < begin + size ? entry.count : begin + size};
}

}  // namespace attune::cuda

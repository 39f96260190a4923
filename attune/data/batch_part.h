#pragma once
// The part of a batch that one rank works on.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace attune {

struct BatchPart {
  int64_t rank = 0;   // from 0
  int64_t ranks = 1;  // each has a part; all parts together are the batch
};

/// The number of a forward pass for random choices that differ between ranks; for rank 0 it is `forward` itself.
inline uint64_t forward_of(uint64_t forward, const BatchPart& part) {
  return forward + (static_cast<uint64_t>(part.rank) << 48);
}

/// Returns [first, second), the neighbouring examples of a batch that belong to the part, given the tokens of each
/// example. Parts have about the same number of tokens. A pure function. Where there are fewer examples than ranks,
/// some parts are empty.
std::pair<size_t, size_t> examples_of_part(std::span<const int64_t> tokens, const BatchPart& part);

}  // namespace attune

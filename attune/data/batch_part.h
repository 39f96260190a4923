#pragma once
// The share of one rank where several work on a batch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace attune {

struct BatchPart {
  int64_t rank = 0;   // from 0
  int64_t ranks = 1;  // that have a part each; together they are the batch
};

/// The number of a forward pass for what is random and is to differ between ranks; rank 0's is `forward` itself.
inline uint64_t forward_of(uint64_t forward, const BatchPart& part) {
  return forward + (static_cast<uint64_t>(part.rank) << 48);
}

/// The examples [first, second) of a batch that belong to the part, given the tokens of each example: neighbours, cut
/// so that every part has about as many tokens. A pure function. Where there are fewer examples than ranks, some parts
/// are empty.
std::pair<size_t, size_t> examples_of_part(std::span<const int64_t> tokens, const BatchPart& part);

}  // namespace attune

#pragma once

#include <cstdint>
#include <span>

#include "attune/text/word_alignment.h"

namespace attune {

struct AlignmentErrorRate {
  double score = 0;      // percent: less is better
  double precision = 0;  // percent of the links found that are right
  double recall = 0;     // percent of the right links that were found
  int64_t found = 0, sure = 0, common = 0;
};

/// 1 - 2 |A and S| / (|A| + |S|) over all sentences together, of the links found, A, and the right ones, S, all of
/// which are sure; 0 where there are none of both. Repeated links count once. Throws DataError unless both have as many
/// sentences. Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5.
AlignmentErrorRate alignment_error_rate(std::span<const WordAlignment> found, std::span<const WordAlignment> sure);

}  // namespace attune

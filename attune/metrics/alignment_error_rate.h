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

/// Returns 1 - 2 |A and S| / (|A| + |S|), in percent, over all sentences together: A are the links found and S the
/// right links, all of which count as sure. It is 0 if there are no links at all. Repeated links count once. Throws
/// DataError unless both have the same number of sentences. Source: Och and Ney 2003, "A Systematic Comparison of
/// Various Statistical Alignment Models", section 5.
AlignmentErrorRate alignment_error_rate(std::span<const WordAlignment> found, std::span<const WordAlignment> sure);

}  // namespace attune

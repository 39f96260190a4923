#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "attune/metrics/bleu.h"

namespace attune {

struct PairedBootstrap {
  double difference = 0;     // BLEU of b minus BLEU of a, on the test set itself
  double low = 0, high = 0;  // between them lie 95 % of the differences on test sets that were drawn
  double p_value = 1;        // share of those test sets on which the better of the two is not better
};

/// Whether the difference of two systems on one test set may be chance: BLEU of both on `samples` test sets of the same
/// size, drawn sentence by sentence with replacement. `a` and `b` are the counts of the same sentences. A p-value below
/// 0.05 is usually called significant. The same seed gives the same numbers. Throws DataError unless both have the same
/// number of sentences, at least one, and `samples` is at least 1. Source: Koehn 2004, "Statistical significance tests
/// for machine translation evaluation", section 4.
PairedBootstrap paired_bootstrap(std::span<const BleuCounts> a, std::span<const BleuCounts> b, int64_t samples = 1000,
                                 uint64_t seed = 1);

/// Returns "p = 0.012"; "p < 0.001" when three digits, or the number of samples, cannot show the value.
std::string p_value_text(double p_value, int64_t samples);

}  // namespace attune

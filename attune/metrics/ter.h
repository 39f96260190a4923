#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "attune/metrics/references.h"

namespace attune {

struct TerScore {
  double score = 0;             // percent: less is better; may be above 100
  int64_t edits = 0;            // insertions, deletions, substitutions and shifts of the whole corpus
  double reference_length = 0;  // words; of several references their mean
};

/// The translation edit rate of a corpus: how many words are inserted, deleted or replaced, and how many phrases are
/// moved, to make the hypothesis a reference, divided by the words of the reference. Of several references, the one
/// with the fewest edits counts, divided by their mean length. Words are separated by white space; case does not count.
/// Throws DataError as References::check() does. Snover et al. 2006, "A study of translation edit rate with targeted
/// human annotation"; equal to sacreBLEU's, whose limits are those of Tercom: the best shifts are searched greedily,
/// phrases have at most 10 words and move at most 50, at most 1000 shifts of a sentence are tried, and the edit
/// distance looks at 25 words on both sides of the diagonal.
TerScore corpus_ter(std::span<const std::string> hypotheses, const References& references);

}  // namespace attune

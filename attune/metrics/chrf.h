#pragma once

#include <span>
#include <string>

#include "attune/metrics/references.h"

namespace attune {

/// chrF2 of a corpus, in percent: character n-grams up to 6, recall weighs twice as much as precision (beta 2), white
/// space does not count, case does. Characters are Unicode code points. Of several references, the one with the best
/// score of the sentence counts. Popovic 2015, equal to sacreBLEU's: precision and recall are averaged over the orders
/// that occur in both texts. Throws DataError as References::check() does.
double corpus_chrf(std::span<const std::string> hypotheses, const References& references);

}  // namespace attune

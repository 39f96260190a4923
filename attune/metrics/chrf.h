#pragma once

#include <span>
#include <string>

namespace attune {

/// chrF2 of a corpus with one reference each, in percent: character n-grams up to 6, recall weighs twice as much as
/// precision (beta 2), white space does not count, case does. Characters are Unicode code points. Popovic 2015, equal
/// to sacreBLEU's: precision and recall are averaged over the orders that occur in both texts. Throws DataError when
/// there is no sentence or the numbers of hypotheses and references differ.
double corpus_chrf(std::span<const std::string> hypotheses, std::span<const std::string> references);

}  // namespace attune

#include "attune/metrics/alignment_error_rate.h"

#include <algorithm>
#include <set>

#include "attune/base/fail.h"

namespace attune {
namespace {

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

AlignmentErrorRate alignment_error_rate(std::span<const WordAlignment> found, std::span<const WordAlignment> sure) {
  if (found.size() != sure.size())
    fail<DataError>("alignment_error_rate: {} sentences are aligned, {} have right links", found.size(), sure.size());
  AlignmentErrorRate rate;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::set<WordAlignment::value_type> a(found[i].begin(), found[i].end()), s(sure[i].begin(), sure[i].end());
    rate.found += std::ssize(a);
    rate.sure += std::ssize(s);
    rate.common += std::ranges::count_if(a, [&](const auto& link) { return s.contains(link); });
  }
  rate.precision = percent(rate.common, rate.found);
  rate.recall = percent(rate.common, rate.sure);
  if (rate.found + rate.sure > 0) rate.score = 100 - percent(2 * rate.common, rate.found + rate.sure);
  return rate;
}

}  // namespace attune

#include "attune/metrics/paired_bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

BleuCounts sum(std::span<const BleuCounts> sentences) {
  BleuCounts all;
  for (const BleuCounts& sentence : sentences) all += sentence;
  return all;
}

double difference(const BleuCounts& a, const BleuCounts& b) {
  return bleu_of(b).score - bleu_of(a).score;
}

}  // namespace

PairedBootstrap paired_bootstrap(std::span<const BleuCounts> a, std::span<const BleuCounts> b, int64_t samples,
                                 uint64_t seed) {
  if (a.size() != b.size() || a.empty())
    fail<DataError>("bootstrap: {} and {} sentences: needs the same number, at least one", a.size(), b.size());
  if (samples < 1) fail<DataError>("bootstrap: {} samples: needs at least 1", samples);
  PairedBootstrap result{.difference = difference(sum(a), sum(b))};
  Random random(seed);
  std::vector<double> differences;
  for (int64_t sample = 0; sample < samples; ++sample) {
    BleuCounts of_a, of_b;
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t drawn = random.below(a.size());
      of_a += a[drawn];
      of_b += b[drawn];
    }
    differences.push_back(difference(of_a, of_b));
  }
  std::ranges::sort(differences);
  const auto at = [&](double share) {
    return differences[static_cast<size_t>(share * static_cast<double>(differences.size() - 1) + 0.5)];
  };
  result.low = at(0.025);
  result.high = at(0.975);
  const auto not_better =
      std::ranges::count_if(differences, [&](double d) { return result.difference >= 0 ? d <= 0 : d >= 0; });
  result.p_value = static_cast<double>(not_better) / static_cast<double>(samples);
  return result;
}

std::string p_value_text(double p_value, int64_t samples) {
  const double least = std::max(0.001, 1 / static_cast<double>(samples));
  return p_value < least ? fmt::format("p < {:.2g}", least) : fmt::format("p = {:.3f}", p_value);
}

}  // namespace attune

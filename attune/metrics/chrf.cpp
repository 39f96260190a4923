#include "attune/metrics/chrf.h"

#include <array>
#include <cstdint>

#include "attune/base/fail.h"
#include "attune/metrics/ngrams.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr std::size_t max_order = 6;
constexpr double beta = 2;

struct OrderCounts {
  int64_t hypothesis = 0, reference = 0, matches = 0;
};

std::u32string without_space(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_space(c)) characters.push_back(c);
  }
  return characters;
}

double f_score(std::span<const OrderCounts> orders) {
  double precision = 0, recall = 0;
  int64_t effective_orders = 0;
  for (const OrderCounts& n : orders) {
    if (n.hypothesis == 0 || n.reference == 0) continue;
    precision += static_cast<double>(n.matches) / static_cast<double>(n.hypothesis);
    recall += static_cast<double>(n.matches) / static_cast<double>(n.reference);
    ++effective_orders;
  }
  if (precision + recall == 0) return 0;
  precision /= static_cast<double>(effective_orders);
  recall /= static_cast<double>(effective_orders);
  return 100 * (1 + beta * beta) * precision * recall / (beta * beta * precision + recall);
}

}  // namespace

double corpus_chrf(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  if (hypotheses.size() != references.size())
    fail<DataError>("chrF: {} hypotheses but {} references", hypotheses.size(), references.size());
  if (hypotheses.empty()) fail<DataError>("chrF: expected at least one sentence, found none");

  std::array<OrderCounts, max_order> orders;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::u32string hypothesis = without_space(hypotheses[i]);
    const std::u32string reference = without_space(references[i]);
    for (std::size_t n = 1; n <= max_order; ++n) {
      OrderCounts& counts = orders[n - 1];
      const int64_t in_reference = count_ngrams(reference.size(), n);
      // As in sacreBLEU, a hypothesis pays no precision at orders for which its reference is too short.
      if (in_reference > 0) counts.hypothesis += count_ngrams(hypothesis.size(), n);
      counts.reference += in_reference;
      counts.matches += shared_ngrams(hypothesis, reference, n);
    }
  }
  return f_score(orders);
}

}  // namespace attune

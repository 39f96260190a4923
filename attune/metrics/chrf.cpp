#include "attune/metrics/chrf.h"

#include <array>
#include <cstdint>

#include "attune/metrics/ngrams.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr std::size_t max_characters = 6;
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

using Counts = std::array<OrderCounts, max_characters>;
using TextNgrams = std::array<Ngrams, max_characters>;

TextNgrams ngrams_of(std::u32string_view text) {
  TextNgrams ngrams;
  for (std::size_t n = 1; n <= max_characters; ++n) ngrams[n - 1] = sorted_ngrams(text, n);
  return ngrams;
}

Counts count(const TextNgrams& hypothesis, const TextNgrams& reference) {
  Counts counts;
  for (std::size_t n = 0; n < max_characters; ++n) {
    // As in sacreBLEU, a hypothesis pays no precision at orders for which its reference is too short.
    if (!reference[n].empty()) counts[n].hypothesis = static_cast<int64_t>(hypothesis[n].size());
    counts[n].reference = static_cast<int64_t>(reference[n].size());
    counts[n].matches = shared_ngrams(hypothesis[n], reference[n]);
  }
  return counts;
}

double f_score(const Counts& orders) {
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

double corpus_chrf(std::span<const std::string> hypotheses, const References& references) {
  references.check("chrF", hypotheses.size());
  Counts sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::u32string hypothesis = without_space(hypotheses[i]);
    const TextNgrams of_hypothesis = ngrams_of(hypothesis);
    double best_score = -1;
    Counts best;
    for (const auto& list : references) {
      const std::u32string reference = without_space(list[i]);
      const Counts counts = count(of_hypothesis, ngrams_of(reference));
      const double score = f_score(counts);
      if (score > best_score) {
        best_score = score;
        best = counts;
      }
    }
    for (std::size_t n = 0; n < max_characters; ++n) {
      sum[n].hypothesis += best[n].hypothesis;
      sum[n].reference += best[n].reference;
      sum[n].matches += best[n].matches;
    }
  }
  return f_score(sum);
}

}  // namespace attune

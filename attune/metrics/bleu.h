#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/metrics/references.h"

namespace attune {

class Tokenizer;

enum class BleuTokenizer {
  none,  // words are separated by white space
  v13a,  // mteval-v13a, the tokenizer of WMT and sacreBLEU's default ("13a")
};

/// As sacreBLEU's signature names it: "none", "13a".
const char* name_of(BleuTokenizer tokenizer);

/// The tokenizer that fits a model with these target tokens: none for a whitespace vocabulary, whose text has its words
/// separated already, else 13a.
BleuTokenizer bleu_tokenizer_for(const Tokenizer& target);

struct BleuScore {
  double score = 0;                    // percent
  std::array<double, 4> precisions{};  // percent, of 1-grams to 4-grams, smoothed
  double brevity_penalty = 0;          // in [0, 1]
  int64_t hypothesis_length = 0;       // tokens
  int64_t reference_length = 0;        // tokens
};

/// What BLEU counts of a sentence, or of sentences together.
struct BleuCounts {
  std::array<int64_t, 4> matches{};  // n-grams that a reference has too, of 1 to 4 words
  std::array<int64_t, 4> totals{};
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens
  BleuCounts& operator+=(const BleuCounts& other);
};

/// The counts of each sentence. An n-gram matches as often as it occurs in the reference that has it most often. The
/// reference length is that of the reference nearest in length, and of two that are as near, the shorter. Throws
/// DataError as References::check() does.
std::vector<BleuCounts> bleu_counts(std::span<const std::string> hypotheses, const References& references,
                                    BleuTokenizer tokenizer = BleuTokenizer::v13a, bool lowercase = false);

/// BLEU of the sentences that were counted together, smoothed as corpus_bleu() says.
BleuScore bleu_of(const BleuCounts& counts);

/// BLEU of a corpus, Papineni et al. 2002, equal to sacreBLEU's (Post 2018): n-grams up to 4, and an order without a
/// match gets 1/2, 1/4, ... matches ("exp", the smoothing of mteval-v13a; Chen and Cherry 2014, method 3). Throws
/// DataError as References::check() does.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, const References& references,
                      BleuTokenizer tokenizer = BleuTokenizer::v13a, bool lowercase = false);

/// The tokens of a line as mteval-v13a makes them, with one space between each two.
std::string tokenize_13a(std::string_view line);

}  // namespace attune

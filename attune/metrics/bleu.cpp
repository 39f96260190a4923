#include "attune/metrics/bleu.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "attune/base/replace_all.h"
#include "attune/metrics/ngrams.h"
#include "attune/metrics/number_words.h"
#include "attune/text/unicode.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {
namespace {

constexpr std::size_t max_order = 4;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_stop(char c) {
  return c == '.' || c == ',';
}

// The space, and ASCII punctuation except ' , - and the full stop: the character class of mteval-v13a.
bool is_symbol(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string separate_symbols(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_symbol(c)) {
      result += {' ', c, ' '};
    } else {
      result += c;
    }
  }
  return result;
}

/// Goes from left to right and puts spaces `before`, `between` and `after` each pair of neighbours (a, b) with
/// `matches(a, b)`; pairs do not overlap. That bytes are compared, not code points, changes nothing: one of the two is
/// always ASCII, and no space goes to the other one's far side.
template <class Matches>
std::string separate_pairs(std::string_view text, Matches matches, std::string_view before, std::string_view between,
                           std::string_view after) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      result += text[i];
      continue;
    }
    result += before;
    result += text[i];
    result += between;
    result += text[++i];
    result += after;
  }
  return result;
}

/// Without the white space at the end.
std::string_view strip_right(std::string_view text) {
  const auto words = split_words(text);
  if (words.empty()) return {};
  return text.substr(0, static_cast<std::size_t>(words.back().data() - text.data()) + words.back().size());
}

std::string tokenize(std::string_view line, BleuTokenizer tokenizer, bool lower) {
  const std::string text = lower ? lowercase(line) : std::string(line);
  return tokenizer == BleuTokenizer::v13a ? tokenize_13a(strip_right(text)) : text;
}

int64_t nearest_length(int64_t length, const std::vector<std::u32string>& texts) {
  auto nearest = static_cast<int64_t>(texts.front().size());
  for (const std::u32string& text : texts) {
    const auto found = static_cast<int64_t>(text.size());
    const int64_t far = std::abs(nearest - length), near = std::abs(found - length);
    if (near < far || (near == far && found < nearest)) nearest = found;
  }
  return nearest;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (std::size_t n = 0; n < max_order; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

// Papineni et al. 2002, section 2.3.
BleuScore bleu_of(const BleuCounts& counts) {
  const int64_t hypothesis_length = counts.hypothesis_length, reference_length = counts.reference_length;
  BleuScore bleu{.brevity_penalty = 1, .hypothesis_length = hypothesis_length, .reference_length = reference_length};
  if (hypothesis_length == 0) {
    bleu.brevity_penalty = reference_length > 0 ? 0 : 1;
  } else if (hypothesis_length < reference_length) {
    bleu.brevity_penalty = std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
  }
  if (counts.matches == std::array<int64_t, max_order>{}) return bleu;

  double sum_of_logs = 0;
  double smoothing = 1;
  for (std::size_t n = 0; n < max_order; ++n) {
    if (counts.totals[n] == 0) return bleu;  // no sentence is long enough: a precision of 0, and so the score
    const auto total = static_cast<double>(counts.totals[n]);
    if (counts.matches[n] == 0) {
      smoothing *= 2;
      bleu.precisions[n] = 100 / (smoothing * total);
    } else {
      bleu.precisions[n] = 100 * static_cast<double>(counts.matches[n]) / total;
    }
    sum_of_logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(sum_of_logs / max_order);
  return bleu;
}

std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  text = separate_symbols(" " + text + " ");
  // A full stop or comma unless it stands between digits, and a hyphen behind a digit.
  text = separate_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_stop(b); }, "", " ", " ");
  text = separate_pairs(
      text, [](char a, char b) { return is_stop(a) && !is_digit(b); }, " ", " ", "");
  text = separate_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");

  std::string tokens;
  for (const auto word : split_words(text)) {
    if (!tokens.empty()) tokens += ' ';
    tokens += word;
  }
  return tokens;
}

const char* name_of(BleuTokenizer tokenizer) {
  return tokenizer == BleuTokenizer::none ? "none" : "13a";
}

BleuTokenizer bleu_tokenizer_for(const Tokenizer& target) {
  return dynamic_cast<const WhitespaceTokenizer*>(&target) ? BleuTokenizer::none : BleuTokenizer::v13a;
}

std::vector<BleuCounts> bleu_counts(std::span<const std::string> hypotheses, const References& references,
                                    BleuTokenizer tokenizer, bool lowercase) {
  references.check("BLEU", hypotheses.size());
  std::vector<BleuCounts> all;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    WordNumbers numbers;
    const std::u32string hypothesis = number_words(tokenize(hypotheses[i], tokenizer, lowercase), numbers);
    std::vector<std::u32string> texts;
    for (const auto& list : references) texts.push_back(number_words(tokenize(list[i], tokenizer, lowercase), numbers));

    BleuCounts& counts = all.emplace_back();
    counts.hypothesis_length = static_cast<int64_t>(hypothesis.size());
    counts.reference_length = nearest_length(counts.hypothesis_length, texts);
    for (std::size_t n = 1; n <= max_order; ++n) {
      Ngrams in_references;
      for (const std::u32string& text : texts) in_references = united_ngrams(in_references, sorted_ngrams(text, n));
      const Ngrams ngrams = sorted_ngrams(hypothesis, n);
      counts.matches[n - 1] = shared_ngrams(ngrams, in_references);
      counts.totals[n - 1] = static_cast<int64_t>(ngrams.size());
    }
  }
  return all;
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, const References& references, BleuTokenizer tokenizer,
                      bool lowercase) {
  BleuCounts sum;
  for (const BleuCounts& sentence : bleu_counts(hypotheses, references, tokenizer, lowercase)) sum += sentence;
  return bleu_of(sum);
}

}  // namespace attune

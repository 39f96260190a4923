#include "attune/metrics/ter.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "attune/metrics/edit_distance.h"
#include "attune/metrics/number_words.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

// Tercom's limits, as sacreBLEU has them.
constexpr std::size_t most_shifted_words = 10;
constexpr std::size_t farthest_shift = 50;
constexpr int64_t most_tried_shifts = 1000;
// Ours: what is worked on grows with it.
constexpr std::size_t most_words = 100000;

using Words = std::u32string;

// What the edit distance says of each word.
struct Alignment {
  std::vector<std::size_t> place;                 // [reference words] words of the text before the place of each
  std::vector<bool> wrong_text, wrong_reference;  // not matched by the same word
};

Alignment alignment_of(const std::vector<EditDistance::Step>& steps) {
  using Step = EditDistance::Step;
  Alignment alignment;
  for (const Step step : steps) {
    const bool wrong = step != Step::same;
    if (step != Step::only_reference) alignment.wrong_text.push_back(wrong);
    if (step == Step::only_text) continue;
    alignment.place.push_back(alignment.wrong_text.size());
    alignment.wrong_reference.push_back(wrong);
  }
  return alignment;
}

bool any(const std::vector<bool>& wrong, std::size_t begin, std::size_t length) {
  const auto first = wrong.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::find(first, first + static_cast<std::ptrdiff_t>(length), true) !=
         first + static_cast<std::ptrdiff_t>(length);
}

// The `length` words at `from`, put in front of the word that was at `to`; inside the phrase, `to` counts from its end.
Words shifted(const Words& text, std::size_t from, std::size_t length, std::size_t to) {
  const Words phrase = text.substr(from, length);
  Words rest = text;
  rest.erase(from, length);
  return rest.insert(to < from ? to : to > from + length ? to - length : std::min(to, rest.size()), phrase);
}

// The search for the shift that saves most edits. `tried` counts on over the shifts of one sentence.
class ShiftSearch {
 public:
  ShiftSearch(const Words& text, const Words& reference, EditDistance& distance, int64_t& tried)
      : text_(text),
        reference_(reference),
        distance_(distance),
        tried_(tried),
        before_(distance(text)),
        alignment_(alignment_of(distance.steps())) {}

  /// Whether a shift saves edits; then text() has been shifted.
  bool run() {
    for (std::size_t from = 0; from < text_.size(); ++from) {
      const std::size_t first = from < farthest_shift ? 0 : from - farthest_shift;
      const std::size_t last = std::min(reference_.size(), from + farthest_shift + 1);
      for (std::size_t at = first; at < last; ++at)
        if (!try_phrases(from, at)) return best_saving_ > 0;
    }
    return best_saving_ > 0;
  }
  const Words& text() const { return best_text_; }

 private:
  // Every phrase of the text at `from` that the reference has at `at`. False when enough has been tried.
  bool try_phrases(std::size_t from, std::size_t at) {
    for (std::size_t length = 1; length <= most_shifted_words; ++length) {
      if (from + length > text_.size() || at + length > reference_.size()) break;
      if (text_[from + length - 1] != reference_[at + length - 1]) break;
      // Both have to be wrong where they are now, and the phrase's place in the text must lie outside the phrase.
      const std::size_t place = alignment_.place[at];
      if (!any(alignment_.wrong_text, from, length) || !any(alignment_.wrong_reference, at, length)) continue;
      if (place > from && place <= from + length) continue;
      try_places(from, at, length);
      if (tried_ >= most_tried_shifts) return false;
    }
    return true;
  }

  // In front of the reference's phrase, and behind each of its words.
  void try_places(std::size_t from, std::size_t at, std::size_t length) {
    std::size_t previous = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i <= length; ++i) {
      const std::size_t to = at + i == 0 ? 0 : alignment_.place[at + i - 1];
      if (to == previous) continue;
      previous = to;
      Words candidate = shifted(text_, from, length, to);
      const int64_t saving = before_ - distance_(candidate);
      ++tried_;
      // The largest saving, then the longest phrase, then the leftmost phrase, then the leftmost place.
      const auto rank = std::tuple(saving, length, text_.size() - from, text_.size() - to);
      if (!best_text_.empty() && rank <= best_rank_) continue;
      best_rank_ = rank;
      best_saving_ = saving;
      best_text_ = std::move(candidate);
    }
  }

  const Words& text_;
  const Words& reference_;
  EditDistance& distance_;
  int64_t& tried_;
  int64_t before_;
  Alignment alignment_;
  std::tuple<int64_t, std::size_t, std::size_t, std::size_t> best_rank_;
  int64_t best_saving_ = 0;
  Words best_text_;
};

int64_t edits(Words text, const Words& reference) {
  if (reference.empty()) return static_cast<int64_t>(text.size());
  EditDistance distance(reference, text.size());
  int64_t shifts = 0, tried = 0;
  for (;;) {
    ShiftSearch search(text, reference, distance, tried);
    if (!search.run() || tried >= most_tried_shifts) break;
    text = search.text();
    ++shifts;
  }
  return shifts + distance(text);
}

Words words_of(const std::string& line, std::size_t sentence, WordNumbers& numbers) {
  const Words words = number_words(lowercase(line), numbers);
  if (words.size() > most_words)
    fail<DataError>("TER: sentence {} has {} words, at most {} are accepted", sentence + 1, words.size(), most_words);
  return words;
}

}  // namespace

TerScore corpus_ter(std::span<const std::string> hypotheses, const References& references) {
  references.check("TER", hypotheses.size());
  TerScore ter;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    WordNumbers numbers;
    const Words hypothesis = words_of(hypotheses[i], i, numbers);
    int64_t fewest = std::numeric_limits<int64_t>::max();
    std::size_t length = 0;
    for (const auto& list : references) {
      const Words reference = words_of(list[i], i, numbers);
      fewest = std::min(fewest, edits(hypothesis, reference));
      length += reference.size();
    }
    ter.edits += fewest;
    ter.reference_length += static_cast<double>(length) / static_cast<double>(references.size());
  }
  // Where all references are empty, a hypothesis with words is wholly wrong.
  if (ter.reference_length > 0) {
    ter.score = 100 * static_cast<double>(ter.edits) / ter.reference_length;
  } else if (ter.edits > 0) {
    ter.score = 100;
  }
  return ter;
}

}  // namespace attune

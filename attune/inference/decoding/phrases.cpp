#include "attune/inference/decoding/phrases.h"

#include <algorithm>

namespace attune {

RequiredPhrases::RequiredPhrases(TokenSequences phrases) : phrases_(std::move(phrases)) {
  for (const std::vector<int32_t>& phrase : phrases_) {
    std::vector<int32_t>& fallback = fallback_.emplace_back(phrase.size() + 1, 0);
    for (size_t n = 1; n < phrase.size(); ++n) {
      int32_t k = fallback[n];
      while (k > 0 && phrase[static_cast<size_t>(k)] != phrase[n]) k = fallback[static_cast<size_t>(k)];
      fallback[n + 1] = phrase[static_cast<size_t>(k)] == phrase[n] ? k + 1 : 0;
    }
  }
}

int64_t RequiredPhrases::tokens() const {
  int64_t sum = 0;
  for (const auto& phrase : phrases_) sum += static_cast<int64_t>(phrase.size());
  return sum;
}

void RequiredPhrases::push(PhraseProgress& progress, int32_t token) const {
  for (size_t p = 0; p < phrases_.size(); ++p) {
    const std::vector<int32_t>& phrase = phrases_[p];
    int32_t& k = progress[p];
    if (static_cast<size_t>(k) == phrase.size()) continue;
    while (k > 0 && phrase[static_cast<size_t>(k)] != token) k = fallback_[p][static_cast<size_t>(k)];
    if (phrase[static_cast<size_t>(k)] == token) ++k;
  }
}

bool RequiredPhrases::complete(const PhraseProgress& progress) const {
  for (size_t p = 0; p < phrases_.size(); ++p)
    if (static_cast<size_t>(progress[p]) < phrases_[p].size()) return false;
  return true;
}

int64_t RequiredPhrases::bank(const PhraseProgress& progress) const {
  int64_t met = 0, most = 0;
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (static_cast<size_t>(progress[p]) == phrases_[p].size()) {
      met += progress[p];
    } else {
      most = std::max<int64_t>(most, progress[p]);
    }
  }
  return met + most;
}

std::vector<int32_t> RequiredPhrases::next(const PhraseProgress& progress) const {
  std::vector<int32_t> tokens;
  for (size_t p = 0; p < phrases_.size(); ++p)
    if (static_cast<size_t>(progress[p]) < phrases_[p].size())
      tokens.push_back(phrases_[p][static_cast<size_t>(progress[p])]);
  return tokens;
}

template <class Id>
void append_banned(const std::vector<std::vector<Id>>& phrases, std::span<const int32_t> past,
                   std::vector<int32_t>& tokens) {
  for (const std::vector<Id>& phrase : phrases) {
    if (phrase.empty() || phrase.size() - 1 > past.size()) continue;
    if (std::equal(phrase.begin(), phrase.end() - 1, past.end() - static_cast<std::ptrdiff_t>(phrase.size() - 1)))
      tokens.push_back(static_cast<int32_t>(phrase.back()));
  }
}

template void append_banned(const std::vector<std::vector<int32_t>>&, std::span<const int32_t>, std::vector<int32_t>&);
template void append_banned(const std::vector<std::vector<int64_t>>&, std::span<const int32_t>, std::vector<int32_t>&);

void append_repeats(int64_t n, std::span<const int32_t> past, std::vector<int32_t>& tokens) {
  const auto before = static_cast<size_t>(n - 1);
  if (n < 1 || past.size() < before + 1) return;
  const auto last = past.last(before);
  for (size_t i = 0; i + before < past.size(); ++i)
    if (std::equal(last.begin(), last.end(), past.begin() + static_cast<std::ptrdiff_t>(i)))
      tokens.push_back(past[i + before]);
}

}  // namespace attune

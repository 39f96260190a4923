#include "attune/inference/word_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "attune/text/tokenizer.h"

namespace attune {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int32_t count_words(std::string_view text) {
  int32_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (!is_space(text[i]) && (i == 0 || is_space(text[i - 1]))) ++words;
  return words;
}

std::string without_last_spaces(std::string text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
  return text;
}

}  // namespace

std::vector<int32_t> words_of_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> words;
  std::string before;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string text = without_last_spaces(tokenizer.decode(ids.first(i + 1)));
    words.push_back(count_words(text) - (text == before ? 0 : 1));
    before = std::move(text);
  }
  const int32_t last = count_words(before) - 1;
  for (int32_t& word : words) word = std::clamp(word, std::min(last, 0), last);
  return words;
}

WordAlignment align_words(std::span<const int32_t> source_words, std::span<const int32_t> target_words,
                          std::span<const int32_t> alignment) {
  WordAlignment pairs;
  for (size_t t = 0; t < std::min(target_words.size(), alignment.size()); ++t) {
    const int32_t s = alignment[t];
    if (s < 0 || s >= static_cast<int32_t>(source_words.size())) continue;
    const std::pair pair(source_words[static_cast<size_t>(s)], target_words[t]);
    if (pair.first >= 0 && pair.second >= 0) pairs.push_back(pair);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::string pharaoh(const WordAlignment& alignment) {
  std::string text;
  for (const auto& [source, target] : alignment)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
  return text;
}

}  // namespace attune

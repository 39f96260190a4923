#include "attune/text/word_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "attune/base/fail.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string without_last_spaces(std::string text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
  return text;
}

void make_a_set(WordAlignment& pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

// The two numbers of "3-14"; throws DataError.
std::pair<int32_t, int32_t> parse_pair(std::string_view text, std::string_view place) {
  std::pair<int32_t, int32_t> pair(-1, -1);
  const char* const end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, pair.first);
  const bool has_dash = error == std::errc() && dash != end && *dash == '-';
  const auto [rest, other] =
      has_dash ? std::from_chars(dash + 1, end, pair.second) : std::from_chars_result{end, std::errc::invalid_argument};
  if (other != std::errc() || rest != end || pair.first < 0 || pair.second < 0)
    fail<DataError>("{}: \"{}\" is no pair of words, needs two numbers as in 0-1", place, text.substr(0, 40));
  return pair;
}

}  // namespace

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (!is_space(text[i]) && (i == 0 || is_space(text[i - 1]))) ++words;
  return words;
}

std::vector<int32_t> words_of_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> words;
  std::string before;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string text = without_last_spaces(tokenizer.decode(ids.first(i + 1)));
    words.push_back(static_cast<int32_t>(count_words(text)) - (text == before ? 0 : 1));
    before = std::move(text);
  }
  const int32_t last = static_cast<int32_t>(count_words(before)) - 1;
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
  make_a_set(pairs);
  return pairs;
}

std::string pharaoh(const WordAlignment& alignment) {
  std::string text;
  for (const auto& [source, target] : alignment)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
  return text;
}

WordAlignment parse_pharaoh(std::string_view line, int64_t source_words, int64_t target_words, std::string_view place) {
  WordAlignment pairs;
  for (size_t begin = 0; begin < line.size();) {
    size_t end = begin;
    while (end < line.size() && !is_space(line[end])) ++end;
    if (end > begin) {
      const auto [source, target] = pairs.emplace_back(parse_pair(line.substr(begin, end - begin), place));
      if (source >= source_words || target >= target_words)
        fail<DataError>("{}: {}-{} is outside of the sentences, which have {} and {} words", place, source, target,
                        source_words, target_words);
    }
    begin = end + 1;
  }
  make_a_set(pairs);
  return pairs;
}

}  // namespace attune

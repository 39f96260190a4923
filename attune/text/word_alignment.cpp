#include "attune/text/word_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "attune/base/cut_text.h"
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
    fail<DataError>("{}: \"{}\" is no pair of words, needs two numbers as in 0-1", place, cut_text(text, 40));
  return pair;
}

// Counts the words in the text of the first i tokens, for each i in turn. A tokenizer decodes only whole lists of
// tokens, and to decode all of them for each i would take quadratic time. So only the last ones are decoded.
class DecodedWords {
 public:
  DecodedWords(const Tokenizer& tokenizer, std::span<const int32_t> ids) : tokenizer_(tokenizer), ids_(ids) {}

  struct Words {
    int64_t count;
    bool grew;  // the last token added more than spaces
  };
  /// The words of the tokens 0 to i, for i = 0, 1, 2 ...
  Words up_to(size_t i) {
    std::string text = text_of(i);
    const int64_t count = words_before_ + count_words(text);
    if (count > count_) word_starts_.push_back(i);
    const bool grew = text != text_;
    count_ = count;
    text_ = std::move(text);
    if (i + 1 - begin_ >= kMostTokens) shorten(i);
    return {count, grew};
  }
  /// What up_to() found last.
  int64_t count() const { return count_; }

 private:
  static constexpr size_t kMostTokens = 128;  // that are decoded at once
  static constexpr size_t kKept = 32;         // more than any decoder looks back

  std::string text_of(size_t i) const {
    return without_last_spaces(tokenizer_.decode(ids_.subspan(begin_, i + 1 - begin_)));
  }
  // Forgets the tokens in front of the last word that began kKept or more tokens ago. If that word is longer than what
  // is decoded, only its last tokens stay.
  void shorten(size_t i) {
    const auto after = std::upper_bound(word_starts_.begin(), word_starts_.end(), i - kKept);
    const size_t word = after == word_starts_.begin() ? 0 : *std::prev(after);
    begin_ = word > begin_ ? word : i - kKept;
    word_starts_.erase(word_starts_.begin(), after);
    text_ = text_of(i);
    words_before_ = count_ - count_words(text_);
  }

  const Tokenizer& tokenizer_;
  std::span<const int32_t> ids_;
  size_t begin_ = 0;          // the first token that is decoded
  int64_t words_before_ = 0;  // in front of it
  int64_t count_ = 0;
  std::string text_;                 // of the tokens from begin_ on
  std::vector<size_t> word_starts_;  // tokens from begin_ on that began a word
};

}  // namespace

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (!is_space(text[i]) && (i == 0 || is_space(text[i - 1]))) ++words;
  return words;
}

std::vector<int32_t> words_of_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> words;
  DecodedWords decoded(tokenizer, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [count, grew] = decoded.up_to(i);
    words.push_back(static_cast<int32_t>(count) - (grew ? 1 : 0));
  }
  const int32_t last = static_cast<int32_t>(decoded.count()) - 1;
  for (size_t i = 0; i < words.size(); ++i) {  // special tokens are in no word
    const bool special = tokenizer.is_special_token(ids[i]) && ids[i] != tokenizer.unk_id();
    words[i] = special ? -1 : std::clamp(words[i], std::min(last, 0), last);
  }
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

#include "attune/text/text_style.h"

#include <fmt/format.h>

#include "attune/text/text_file.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr int64_t most_lines = 10000, most_checked_lines = 1000;
constexpr std::string_view marks = ".,;:!?";

bool is_mark(char c) {
  return marks.find(c) != marks.npos;
}

}  // namespace

void TextStyleCounts::add(std::string_view line) {
  for (const std::string_view word : split_words(line)) {
    if (word.size() == 1 && is_mark(word[0])) {
      ++separate_;
    } else if (is_mark(word.back()) && !is_mark(word[0])) {
      if (attached_++ == 0) attached_word_ = word;
    }
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      next_code_point(word, at);
      const std::string_view character = word.substr(begin, at - begin);
      const bool capital = lowercase(character) != character;
      if (capital && capitals_++ == 0) capital_word_ = word;
      // Letters without case, as in Chinese, say nothing. Other characters of two bytes are nearly all letters with
      // case.
      letters_ += capital || (character[0] >= 'a' && character[0] <= 'z') || character.size() == 2;
    }
  }
}

TextStyle TextStyleCounts::style() const {
  TextStyle style;
  const int64_t sum = attached_ + separate_;
  if (sum >= 20 && separate_ * 10 >= sum * 9) style.punctuation = Punctuation::separate;
  if (sum >= 20 && attached_ * 10 >= sum * 9) style.punctuation = Punctuation::attached;
  style.lower_case = letters_ >= 1000 && capitals_ * 1000 <= letters_;
  return style;
}

std::optional<std::string> TextStyleCounts::mismatch(const TextStyle& style, bool quotes) const {
  const auto quoted = [&](const std::string& word) { return quotes ? fmt::format(" (\"{}\")", word) : ""; };
  if (style.punctuation == Punctuation::separate && attached_ > separate_)
    return fmt::format("it has punctuation attached to words{}, the model's training text had it separate",
                       quoted(attached_word_));
  if (style.punctuation == Punctuation::attached && separate_ > attached_)
    return "it has separate punctuation, the model's training text had it attached to words";
  if (style.lower_case && capitals_ > 0)
    return fmt::format("it has capital letters{}, the model's training text had none", quoted(capital_word_));
  return std::nullopt;
}

std::optional<std::string> TextStyleCheck::add(std::span<const std::string> lines) {
  if (!style_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (found_ || lines_ >= most_checked_lines) return std::nullopt;
  lines_ += static_cast<int64_t>(lines.size());
  for (const std::string& line : lines) counts_.add(line);
  const std::optional<std::string> mismatch = counts_.mismatch(*style_, quotes_);
  found_ = mismatch.has_value();
  if (!found_) return std::nullopt;
  return fmt::format("the input is not written as the model's training text: {}. Translations may be poor", *mismatch);
}

TextStyle text_style_of(const std::vector<std::string>& files) {
  TextStyleCounts counts;
  int64_t lines = 0;
  for (const std::string& file : files) {
    LineReader reader{std::filesystem::path(file)};
    for (std::string line; lines < most_lines && reader.next(line); ++lines) counts.add(line);
  }
  return counts.style();
}

}  // namespace attune

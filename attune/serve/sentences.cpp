#include "attune/serve/sentences.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>

#include "attune/text/unicode.h"

namespace attune::serve {
namespace {

bool ends_sentence(char32_t c) {
  return c == '.' || c == '!' || c == '?' || c == U'…' || c == U'؟' || c == U'।';
}
bool ends_without_space(char32_t c) {
  return c == U'。' || c == U'！' || c == U'？';
}
bool closes(char32_t c) {
  return c == '"' || c == '\'' || c == ')' || c == ']' || c == U'”' || c == U'’' || c == U'»' || c == U'“' ||
         c == U'」' || c == U'』';
}
bool is_line_break(char32_t c) {
  return c == '\n' || c == '\r' || c == U'\u2028' || c == U'\u2029';
}

// Whether a full stop behind the word may belong to it: a number, an initial, or a known abbreviation.
bool is_abbreviation(std::string_view word) {
  constexpr size_t kLongest = 16;  // bytes of four letters; no known one is longer
  static constexpr std::array<std::string_view, 27> kKnown = {
      "mr",  "mrs", "ms", "dr", "prof", "st", "vs", "etc", "fig", "sr",   "jr",  "inc",  "ltd", "co",
      "bzw", "usw", "ca", "nr", "str",  "hr", "fr", "vgl", "abb", "evtl", "ggf", "inkl", "mme"};
  if (word.empty()) return false;
  // From its end, where most words fail at once: a long word with many full stops is checked at each of them.
  if (std::all_of(word.rbegin(), word.rend(), [](char c) { return c >= '0' && c <= '9'; })) return true;
  if (word.size() == 1 || (word.size() > 2 && word[word.size() - 2] == '.')) return true;  // J., z.B., U.S.
  if (word.size() > kLongest) return false;
  const std::string lower = lowercase(word);
  return std::find(kKnown.begin(), kKnown.end(), lower) != kKnown.end();
}

// Walks over the text by code points.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  SplitText split() {
    SplitText result;
    skip_space();
    result.space_before = text_.substr(0, at_);
    while (at_ < text_.size()) {
      const size_t begin = at_, end = end_of_sentence();
      at_ = end;
      skip_space();
      result.sentences.push_back({text_.substr(begin, end - begin), text_.substr(end, at_ - end)});
    }
    return result;
  }

 private:
  char32_t next() { return next_code_point(text_, at_); }

  void skip_space() {
    while (at_ < text_.size()) {
      const size_t before = at_;
      if (is_space(next())) continue;
      at_ = before;
      return;
    }
  }

  // The end of the sentence that begins here, without the white space behind it.
  size_t end_of_sentence() {
    size_t last = at_;  // behind the last character that is no white space
    while (at_ < text_.size()) {
      const size_t before = at_;
      const char32_t c = next();
      if (is_line_break(c)) return last;
      if (is_space(c)) continue;
      last = at_;
      if (ends_without_space(c)) return skip_closing();
      if (!ends_sentence(c)) continue;
      const bool abbreviation = c == '.' && is_abbreviation(last_word(before));
      last = skip_closing();
      if (!abbreviation && new_one_follows()) return last;
    }
    return last;
  }
  // The word that ends here. Each place is looked at once, however long a text without spaces is.
  std::string_view last_word(size_t end) {
    for (; seen_ < end; ++seen_)
      if (std::string_view(" \t\n(\"'").find(text_[seen_]) != std::string_view::npos) word_ = seen_ + 1;
    return text_.substr(word_, end - word_);
  }
  size_t skip_closing() {
    while (at_ < text_.size()) {
      const size_t before = at_;
      const char32_t c = next();
      if (closes(c) || ends_sentence(c) || ends_without_space(c)) continue;
      at_ = before;
      break;
    }
    return at_;
  }
  bool new_one_follows() const {
    size_t at = at_;
    if (at == text_.size() || !is_space(next_code_point(text_, at))) return false;
    while (at < text_.size()) {
      const char32_t c = next_code_point(text_, at);
      if (!is_space(c)) return u_islower(static_cast<UChar32>(c)) == 0;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t seen_ = 0, word_ = 0;  // of last_word(): where it goes on, and where the word there begins
};

}  // namespace

SplitText split_sentences(std::string_view text) {
  return Splitter(text).split();
}

}  // namespace attune::serve

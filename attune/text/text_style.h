#pragma once
// How a text is written, so that a model can say when it is given text of another kind.

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/fields.h"

namespace attune {

enum class Punctuation {
  mixed,     // both, or too few of them to tell
  attached,  // "a dog."
  separate,  // "a dog .", as the tokenizers of Moses and others write
};

template <>
struct EnumNames<Punctuation> {
  static constexpr std::pair<Punctuation, const char*> values[] = {
      {Punctuation::mixed, "mixed"}, {Punctuation::attached, "attached"}, {Punctuation::separate, "separate"}};
};

struct TextStyle {
  Punctuation punctuation = Punctuation::mixed;
  bool lower_case = false;  // no capital letters
};

template <class FieldVisitor>
void visit_fields(TextStyle& c, FieldVisitor& v) {
  v("punctuation", c.punctuation);
  v("lower_case", c.lower_case);
}

/// What is counted of a text to tell its style. Words are separated by white space; punctuation is one of . , ; : ! ?
/// at the end of a word, or alone.
class TextStyleCounts {
 public:
  void add(std::string_view line);

  /// The style of a text that was counted: `mixed` where less than nine of ten are of one kind, or there are fewer than
  /// 20; lower case where there are at least 1000 letters and one of a thousand at most is a capital.
  TextStyle style() const;
  /// Why the text that was counted is evidently not as the text with `style`; none where it may be. For people.
  /// `quotes`: with a word of it.
  std::optional<std::string> mismatch(const TextStyle& style, bool quotes = true) const;

 private:
  int64_t attached_ = 0, separate_ = 0, letters_ = 0, capitals_ = 0;
  std::string attached_word_, capital_word_;  // the first of each
};

/// Finds, once and early, that an input is evidently not written as a text with `style` (none: nothing is found).
/// Thread-safe.
class TextStyleCheck {
 public:
  /// `quotes`: what it says has a word of the input.
  explicit TextStyleCheck(std::optional<TextStyle> style, bool quotes = true) : style_(style), quotes_(quotes) {}
  /// Why, in words for people, with the lines that make it evident; none with all others. No more is looked at once
  /// there were 1000 lines.
  std::optional<std::string> add(std::span<const std::string> lines);

 private:
  const std::optional<TextStyle> style_;
  const bool quotes_;
  std::mutex mutex_;  // of what follows
  TextStyleCounts counts_;
  int64_t lines_ = 0;
  bool found_ = false;
};

/// The style of the first 10,000 lines of the files. Throws FileError and DataError as LineReader does.
TextStyle text_style_of(const std::vector<std::string>& files);

}  // namespace attune

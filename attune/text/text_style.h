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

  /// Returns the style of the lines that were added. Punctuation is `mixed` when there are fewer than 20 marks, or
  /// fewer than nine of ten are of one kind. The text is in lower case when it has at least 1000 letters, of which at
  /// most one of a thousand is a capital.
  TextStyle style() const;
  /// Returns, in words for people, why the lines that were added are evidently not written in `style`; nothing when
  /// they may be. `quotes`: the reason quotes a word of them.
  std::optional<std::string> mismatch(const TextStyle& style, bool quotes = true) const;

 private:
  int64_t attached_ = 0, separate_ = 0, letters_ = 0, capitals_ = 0;
  std::string attached_word_, capital_word_;  // the first of each
};

/// Reports once, as early as possible, that an input is evidently not written in `style`. Without a style it reports
/// nothing. Thread-safe.
class TextStyleCheck {
 public:
  /// `quotes`: the report quotes a word of the input.
  explicit TextStyleCheck(std::optional<TextStyle> style, bool quotes = true) : style_(style), quotes_(quotes) {}
  /// Returns the report, in words for people, from the call whose lines make it evident; nothing from every other call.
  /// Looks at no more lines once there were 1000.
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

#pragma once
// How a text is written, so that a model can say when it is given text of another kind.

#include <cstdint>
#include <optional>
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
  std::optional<std::string> mismatch(const TextStyle& style) const;

 private:
  int64_t attached_ = 0, separate_ = 0, letters_ = 0, capitals_ = 0;
  std::string attached_word_, capital_word_;  // the first of each
};

/// The style of the first 10,000 lines of the files. Throws FileError and DataError as LineReader does.
TextStyle text_style_of(const std::vector<std::string>& files);

}  // namespace attune

#pragma once
// A text as its sentences.

#include <string>
#include <string_view>
#include <vector>

namespace attune::serve {

struct Sentence {
  std::string_view text;         // not empty, without white space around it
  std::string_view space_after;  // up to the next sentence, or the end
};

struct SplitText {
  std::string_view space_before;
  std::vector<Sentence> sentences;
};

/// Splits a text at line breaks and where a sentence ends: after . ! ? and their like, and the quotes and brackets that
/// close there, if white space follows. No sentence ends before a letter in lower case, nor with the full stop of a
/// number or a known abbreviation. A full stop of Chinese or Japanese ends one without white space too. All pieces
/// together are the text. The views point into it. `text` has to be valid UTF-8.
SplitText split_sentences(std::string_view text);

}  // namespace attune::serve

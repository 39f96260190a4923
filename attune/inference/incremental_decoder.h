#pragma once
// Tokens to text, one at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// Decodes tokens one by one and returns the text that each adds to the text before. Returns whole characters: the
/// bytes of an incomplete character wait for the next token, and byte tokens (<0xE2>) of Hugging Face for the end of
/// their run. What all calls return, joined, is what Tokenizer::decode() gives.
class IncrementalDecoder {
 public:
  /// `before` are the tokens that the text continues; they decide whether it begins with a space. With
  /// `eos_is_line_end`, eos is a line break; otherwise it is no text. An eos inside `before` is never text.
  IncrementalDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before, bool eos_is_line_end);

  /// Adds a token and returns the text that is now certain; it may be empty. Throws DataError on an id outside the
  /// vocabulary.
  std::string push(int32_t token);
  /// Returns the rest; bytes that are no complete character become U+FFFD. The next push() begins a new text.
  std::string finish();

 private:
  bool is_in_run(int32_t token) const;
  bool is_within_run(size_t i) const;
  void shorten(size_t uncertain);
  bool take_window(std::vector<int32_t> tokens, size_t uncertain, bool may_be_blank);

  const Tokenizer& tokenizer_;
  bool eos_is_line_end_;
  std::vector<int32_t> window_;  // the last tokens, decoded together
  std::string returned_;         // of the window's text, what push() has returned
};

}  // namespace attune

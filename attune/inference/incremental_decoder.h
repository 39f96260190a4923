#pragma once
// Tokens to text, one at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// The text that tokens add to what stands before them, as it arrives. What is returned is whole characters: the bytes
/// of one that is not complete wait for the next token.
class IncrementalDecoder {
 public:
  /// `before` are the tokens that the text goes on from; they decide about a space at the start. With
  /// `eos_is_line_end`, eos is a line break; else it is no text, like every eos inside `before`.
  IncrementalDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before, bool eos_is_line_end);

  /// What is certain once `token` is there; may be empty. Throws DataError on an id outside the vocabulary.
  std::string push(int32_t token);
  /// The rest: bytes that never became a character are U+FFFD. A new text begins then.
  std::string finish();

 private:
  void shorten();

  const Tokenizer& tokenizer_;
  bool eos_is_line_end_;
  std::vector<int32_t> window_;  // the last tokens, decoded together
  size_t returned_ = 0;          // bytes of the window's text that are with the caller
};

}  // namespace attune

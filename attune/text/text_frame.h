#pragma once

#include <cstdint>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// The special tokens around the tokens of a text.
struct TextFrame {
  std::vector<int32_t> before, after;
  size_t size() const { return before.size() + after.size(); }
};

/// Returns what the tokenizer puts around texts (`tokenizer_frames_texts`), else bos and eos. Throws ConfigError where
/// the tokenizer does not leave the tokens between as they are.
TextFrame text_frame(const Tokenizer& tokenizer, bool tokenizer_frames_texts);

}  // namespace attune

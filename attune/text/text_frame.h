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

/// With `tokenizer_frames_texts`, returns the tokens that the tokenizer puts around a text; else bos and eos. Throws
/// ConfigError when the tokenizer changes the tokens between them.
TextFrame text_frame(const Tokenizer& tokenizer, bool tokenizer_frames_texts);

}  // namespace attune

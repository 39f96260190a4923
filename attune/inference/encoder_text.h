#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// A text as an encoder reads it.
struct EncoderText {
  std::vector<int32_t> tokens;  // with the special tokens around the text
  int64_t cut = 0;              // tokens that were left out
};

/// The first `longest` tokens of a text. `tokenizer_frames_texts`: with the special tokens that the
/// tokenizer puts around a text; else with bos and eos.
inline EncoderText encode_for_encoder(const Tokenizer& tokenizer, bool tokenizer_frames_texts, std::string_view text,
                                      int64_t longest) {
  const auto beyond = [&](size_t tokens) { return std::max<int64_t>(0, static_cast<int64_t>(tokens) - longest); };
  if (tokenizer_frames_texts) {
    std::vector<int32_t> tokens = tokenizer.encode_for_model(text).ids;
    const int64_t cut = beyond(tokens.size());
    if (cut > 0) tokens = tokenizer.encode_for_model(text, {.truncation = Truncation{.max_length = longest}}).ids;
    return {std::move(tokens), cut};
  }
  std::vector<int32_t> tokens = tokenizer.encode(text);
  const int64_t cut = beyond(tokens.size() + 2);
  tokens.resize(tokens.size() - std::min(static_cast<size_t>(cut), tokens.size()));
  tokens.insert(tokens.begin(), tokenizer.bos_id());
  tokens.push_back(tokenizer.eos_id());
  return {std::move(tokens), cut};
}

}  // namespace attune

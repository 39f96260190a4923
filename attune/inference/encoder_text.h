#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// A text, or two, as an encoder reads them.
struct EncoderText {
  std::vector<int32_t> tokens;      // with the special tokens around the text
  std::vector<int32_t> types = {};  // of each token, which of two texts it belongs to; none: all belong to the first
  int64_t cut = 0;                  // tokens that were left out
};

/// The first `longest` tokens of a text. `tokenizer_frames_texts`: with the special tokens that the
/// tokenizer puts around a text; else with bos and eos.
inline EncoderText encode_for_encoder(const Tokenizer& tokenizer, bool tokenizer_frames_texts, std::string_view text,
                                      int64_t longest) {
  if (tokenizer_frames_texts) {
    Encoding found = tokenizer.encode_for_model(text, {.truncation = Truncation{.max_length = longest}});
    return {.tokens = std::move(found.ids), .cut = found.cut};
  }
  std::vector<int32_t> tokens = tokenizer.encode(text);
  const int64_t cut = std::max<int64_t>(0, static_cast<int64_t>(tokens.size()) + 2 - longest);
  tokens.resize(tokens.size() - std::min(static_cast<size_t>(cut), tokens.size()));
  tokens.insert(tokens.begin(), tokenizer.bos_id());
  tokens.push_back(tokenizer.eos_id());
  return {.tokens = std::move(tokens), .cut = cut};
}

/// Two texts in the tokenizer's form for pairs; the longer one is cut first. Throws ConfigError where there is no such
/// form.
inline EncoderText encode_pair_for_encoder(const Tokenizer& tokenizer, std::string_view first, std::string_view second,
                                           int64_t longest) {
  Encoding found = tokenizer.encode_pair(first, second, {.truncation = Truncation{.max_length = longest}});
  return {.tokens = std::move(found.ids), .types = std::move(found.type_ids), .cut = found.cut};
}

}  // namespace attune

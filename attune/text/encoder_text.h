#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

/// Encodes a text in at most `longest` tokens, special tokens included; the end of a longer text is cut. The special
/// tokens are those that the tokenizer puts around a text with `tokenizer_frames_texts`, else bos and eos.
inline Encoding encode_for_encoder(const Tokenizer& tokenizer, bool tokenizer_frames_texts, std::string_view text,
                                   int64_t longest) {
  if (tokenizer_frames_texts)
    return tokenizer.encode_for_model(text, {.truncation = Truncation{.max_length = longest}});
  std::vector<int32_t> ids = tokenizer.encode(text);
  const int64_t cut = std::max<int64_t>(0, static_cast<int64_t>(ids.size()) + 2 - longest);
  ids.resize(ids.size() - std::min(static_cast<size_t>(cut), ids.size()));
  ids.insert(ids.begin(), tokenizer.bos_id());
  ids.push_back(tokenizer.eos_id());
  return {.ids = std::move(ids), .type_ids = {}, .cut = cut};
}

}  // namespace attune

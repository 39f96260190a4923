#include "attune/text/text_frame.h"

#include <algorithm>
#include <string_view>

#include "attune/base/fail.h"

namespace attune {

TextFrame text_frame(const Tokenizer& tokenizer, bool tokenizer_frames_texts) {
  if (!tokenizer_frames_texts) return {.before = {tokenizer.bos_id()}, .after = {tokenizer.eos_id()}};
  for (const std::string_view text : {"a", "the", "0", "."}) {
    const std::vector<int32_t> alone = tokenizer.encode(text), framed = tokenizer.encode_for_model(text).ids;
    if (framed == alone) return {};
    const auto inside = std::search(framed.begin(), framed.end(), alone.begin(), alone.end());
    if (!alone.empty() && inside != framed.end())
      return {.before = {framed.begin(), inside},
              .after = {inside + static_cast<std::ptrdiff_t>(alone.size()), framed.end()}};
  }
  fail<ConfigError>("the tokenizer changes the tokens of a text between the special tokens that it adds");
}

}  // namespace attune

// A text and its sentences: all pieces together are the text.

#include "attune/serve/sentences.h"
#include "attune/text/text_file.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const std::string_view text = fuzz::text_of(data, size);
  if (!valid_utf8(text)) return 0;
  const serve::SplitText split = serve::split_sentences(text);
  std::string whole(split.space_before);
  for (const serve::Sentence& sentence : split.sentences) {
    fuzz::require(!sentence.text.empty() && valid_utf8(sentence.text));
    whole.append(sentence.text).append(sentence.space_after);
  }
  fuzz::require(whole == text);
  return 0;
}

// tokenizer.json of the Hugging Face hub; what is accepted reads and writes a text.

#include "attune/text/huggingface/folders/folder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  return fuzz::answer([&] {
    const auto tokenizer =
        huggingface::load_tokenizer_json(fuzz::text_of(data, size), fuzz::folder() / "tokenizer.json");
    const auto encoding = tokenizer->encode_for_model("The  caf\u00e9\t12,5 [MASK] \U0001F642 aaab");
    for (const int32_t id : encoding.ids) fuzz::require(id >= 0 && id < tokenizer->vocab_size());
    tokenizer->decode(encoding.ids, true);
  });
}

// vocab.json, merges.txt and tokenizer_config.json (byte-level BPE), separated by NUL.

#include "attune/text/huggingface/folders/folder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto [vocabulary, merges, config] = fuzz::split<3>(fuzz::text_of(data, size));
  const auto path = fuzz::file("vocab.json", vocabulary);
  fuzz::file("merges.txt", merges);
  fuzz::file("tokenizer_config.json", config);
  return fuzz::answer([&] {
    const auto tokenizer = huggingface::load_by_file_name(path);
    tokenizer->decode(tokenizer->encode_for_model("The caf\u00e9 <mask> aaab").ids, true);
  });
}

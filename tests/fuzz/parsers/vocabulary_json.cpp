// vocabulary.json: words, characters or bytes; what is accepted reads and writes a text.

#include "attune/text/tokenizer.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("vocabulary.json", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const auto tokenizer = load_tokenizer(path);
    const auto ids = tokenizer->encode("der Stra\u00DFen ab \" \\ \U0001F642");
    for (const int32_t id : ids) fuzz::require(id >= 0 && id < tokenizer->vocab_size());
    tokenizer->decode(ids);
  });
}

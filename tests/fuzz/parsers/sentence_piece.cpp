// tokenizer.model: a SentencePiece model; what is accepted reads and writes a text.

#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  return fuzz::answer([&] {
    const SentencePieceTokenizer tokenizer(std::string(fuzz::text_of(data, size)), "tokenizer.model");
    const auto ids = tokenizer.encode("Zwei Hunde \uFF76\uFF9E \u0041\u030A \U0001F642 aaaaaaaaaaaaaaaaaaaa  ");
    for (const int32_t id : ids) fuzz::require(id >= 0 && id < tokenizer.vocab_size());
    tokenizer.decode(ids);
  });
}

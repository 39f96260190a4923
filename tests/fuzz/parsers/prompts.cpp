// Prompts with answers, as JSON lines.

#include "attune/data/prompts.h"
#include "attune/text/character_tokenizer.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static const auto tokenizer = CharacterTokenizer::build_from_texts({"a small text\n"});
  const auto path = fuzz::file("prompts.jsonl", fuzz::text_of(data, size));
  return fuzz::answer([&] { read_prompts({path}, tokenizer); });
}

// tokenizer_config.json, special_tokens_map.json and added_tokens.json, separated by NUL.

#include "attune/text/huggingface/special_tokens.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto [config, map, added] = fuzz::split<3>(fuzz::text_of(data, size));
  fuzz::file("tokenizer_config.json", config);
  fuzz::file("special_tokens_map.json", map);
  fuzz::file("added_tokens.json", added);
  return fuzz::answer([] { huggingface::read_tokenizer_config(fuzz::folder().path()); });
}

// modules.json, sentence_bert_config.json and config.json of the pooling, separated by NUL.

#include "attune/inference/embedder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto [modules, transformer, pooling] = fuzz::split<3>(fuzz::text_of(data, size));
  fuzz::file("modules.json", modules);
  fuzz::file("sentence_bert_config.json", transformer);
  fuzz::file("config.json", pooling);
  return fuzz::answer([] { read_embedding_settings(fuzz::folder().path()); });
}

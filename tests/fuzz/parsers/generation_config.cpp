// generation_config.json of Attune: how an encoder-decoder searches, how a language model samples.

#include "attune/models/generation_config.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"
#include "attune/models/sampling_config.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto read = [&]<class Config>(Config config) {
    return fuzz::answer([&] {
      read_fields(parse_json(fuzz::text_of(data, size), "generation_config.json"), config, "generation_config.json");
      config.validate();
    });
  };
  return read(GenerationConfig()) + read(SamplingConfig());
}

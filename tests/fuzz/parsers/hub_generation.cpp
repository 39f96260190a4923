// generation_config.json of the Hugging Face hub.

#include "attune/hub/hub_generation.h"
#include "attune/base/json_fields.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static const HubConfig config(Json{{"model_type", "marian"}, {"eos_token_id", 0}, {"vocab_size", 100}},
                                "config.json");
  fuzz::file("generation_config.json", fuzz::text_of(data, size));
  fuzz::answer([&] { read_hub_generation(fuzz::folder().path(), config); });
  return fuzz::answer([&] { read_hub_sampling(fuzz::folder().path(), config); });
}

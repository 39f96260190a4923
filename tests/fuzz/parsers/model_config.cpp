// config.json of a model folder of Attune.

#include "attune/io/config_file.h"
#include "attune/models/transformer.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  fuzz::file("config.json", fuzz::text_of(data, size));
  return fuzz::answer([] { fuzz::require(count_parameters(read_model_config(fuzz::folder().path())).total() > 0); });
}

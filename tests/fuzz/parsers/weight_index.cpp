// model.safetensors.index.json: which file has which tensor.

#include "attune/io/weight_index.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("model.safetensors.index.json", fuzz::text_of(data, size));
  return fuzz::answer([&] { read_weight_map(path); });
}

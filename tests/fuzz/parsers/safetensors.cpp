// A safetensors file: its header and its tensors.

#include "attune/io/safetensors.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("x", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const SafetensorsReader reader(path);
    for (const std::string& name : reader.names()) reader.load(name);
    reader.verify();
  });
}

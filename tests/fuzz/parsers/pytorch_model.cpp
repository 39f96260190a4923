// pytorch_model.bin: the zip archive, the older form without one, and the pickle.

#include "attune/io/tensor_source.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  fuzz::file("pytorch_model.bin", fuzz::text_of(data, size));
  return fuzz::answer([] {
    const TensorSource source(fuzz::folder().path());
    for (const std::string& name : source.names()) source.read(name);
  });
}

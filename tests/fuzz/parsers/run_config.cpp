// The TOML file of a run. What is accepted is the same after it was written and read again.

#include "attune/train/config.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("run.toml", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const RunConfig config = read_run_config(path);
    fuzz::require(read_run_config(fuzz::file("again.toml", write_toml(config))) == config);
  });
}

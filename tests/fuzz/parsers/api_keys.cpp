// The file of API keys of attune serve, and a key that somebody sends.

#include "attune/serve/api_keys.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("keys.toml", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const serve::ApiKeys keys(path);
    fuzz::require(keys.on());
    keys.find("a secret of at least 16 characters");
  });
}

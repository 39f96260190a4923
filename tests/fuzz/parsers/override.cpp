// An assignment of --set.

#include "attune/base/json_fields.h"
#include "attune/io/toml_config.h"
#include "attune/train/config.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static const Json config = write_fields(RunConfig());
  return fuzz::answer([&] {
    Json changed = config;
    apply_override(changed, std::string(fuzz::text_of(data, size)));
    changed.dump();
  });
}

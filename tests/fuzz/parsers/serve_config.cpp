// serve.toml, as attune serve reads it.

#include "attune/serve/serve_config.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("serve.toml", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    serve::ServeConfig config;
    serve::read_serve_config(path, config);
    config.http.host = "127.0.0.1";  // no name server is asked
    config.validate();
    fuzz::require(!config.models.empty() && config.limits.beam_size > 0);
  });
}

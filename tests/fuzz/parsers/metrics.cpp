// metrics.jsonl of a run, as attune compare and report read it.

#include "attune/base/json_fields.h"
#include "attune/cli/run_metrics.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("metrics.jsonl", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const std::vector<Json> lines = cli::read_metrics(path);
    for (const std::string& name : cli::names_of(lines)) cli::best_of(lines, name);
  });
}

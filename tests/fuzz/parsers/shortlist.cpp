// A shortlist of attune shortlist.

#include "attune/inference/decoding/shortlist.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("x", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const Shortlist shortlist = Shortlist::load(path);
    for (const int32_t id : shortlist.targets_of(std::vector<int32_t>{0, 1, 2, -1, 1000000}))
      fuzz::require(id >= 0 && id < shortlist.target_vocab());
  });
}

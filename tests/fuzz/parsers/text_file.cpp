// A text, plain or gzip, by lines and by pieces.

#include "attune/text/text_file.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("x", fuzz::text_of(data, size));
  constexpr TextLimits kLimits = {.line_bytes = 4096, .total_bytes = 1 << 20, .lines = 4096};
  fuzz::answer([&] {
    LineReader reader(path, kLimits);
    for (std::string line; reader.next(line);) fuzz::require(valid_utf8(line));
  });
  return fuzz::answer([&] {
    TextReader reader(path, kLimits, 64);
    for (std::string piece; reader.next(piece);) fuzz::require(valid_utf8(piece));
  });
}

// A line of word alignments in Pharaoh's format; the first two bytes are the numbers of words.

#include "attune/text/word_alignment.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  if (size < 2) return 0;
  const std::string_view line = fuzz::text_of(data + 2, size - 2);
  return fuzz::answer([&] {
    const WordAlignment pairs = parse_pharaoh(line, data[0], data[1], "line 1");
    for (const auto& [source, target] : pairs)
      fuzz::require(source >= 0 && source < data[0] && target >= 0 && target < data[1]);
    fuzz::require(parse_pharaoh(pharaoh(pairs), data[0], data[1], "line 1") == pairs);
  });
}

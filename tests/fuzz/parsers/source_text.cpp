// source_text.json, the style of a model's training text.

#include "attune/io/text_style_file.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  fuzz::file(kSourceTextFile, fuzz::text_of(data, size));
  return fuzz::answer([] {
    const std::optional<TextStyle> style = read_source_text(fuzz::folder().path());
    fuzz::require(style.has_value());
    write_source_text(fuzz::folder().path(), *style);
    const std::optional<TextStyle> again = read_source_text(fuzz::folder().path());
    fuzz::require(again && again->punctuation == style->punctuation && again->lower_case == style->lower_case);
  });
}

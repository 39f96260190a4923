// Labelled texts; the first byte says whether they are tsv, CSV or JSON lines.

#include "attune/data/labelled_corpus.h"
#include "attune/text/text_file.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  if (size == 0) return 0;
  const LabelledFormat formats[] = {LabelledFormat::tsv, LabelledFormat::csv, LabelledFormat::jsonl};
  const auto path = fuzz::file("x", fuzz::text_of(data + 1, size - 1));
  return fuzz::answer([&] {
    for (const LabelledText& text : read_labelled(path, {.format = formats[data[0] % 3], .needs_label = data[0] < 128}))
      fuzz::require(valid_utf8(text.label) && valid_utf8(text.text));
  });
}

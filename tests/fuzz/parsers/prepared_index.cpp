// index.json of a prepared text.

#include "attune/train/prepared_folder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  fuzz::file("index.json", fuzz::text_of(data, size));
  return fuzz::answer([] {
    const PreparedIndex index = read_prepared_index(fuzz::folder().path());
    open_prepared(fuzz::folder().path(), index);
  });
}

// run.json, the files that a run has written, in a folder where some are. A name in it never leads out of the folder.

#include "attune/base/file.h"
#include "attune/train/run_folder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  namespace fs = std::filesystem;
  const fs::path run = fuzz::folder() / "run", outside = fuzz::file("outside", "theirs");
  fs::remove_all(run);
  fs::create_directory(run);
  for (const char* name : {"run/config.toml", "run/metrics.jsonl", "run/vocabulary.json"}) fuzz::file(name, "theirs");
  fuzz::file("run/run.json", fuzz::text_of(data, size));
  fuzz::answer([&] {
    RunFolder folder(run);
    folder.own("metrics.jsonl");
    folder.write("config.toml", "ours");
    folder.save_tokenizers([](const fs::path& to) { std::ofstream(to / "tokenizer.model") << "ours"; });
  });
  fuzz::require(read_file(outside) == "theirs");
  return 0;
}

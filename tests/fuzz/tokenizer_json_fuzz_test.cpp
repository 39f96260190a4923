// Whatever a tokenizer.json is: a tokenizer whose ids are inside its vocabulary, or attune::Error.

#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "attune/text/tokenizer.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::string> kTokenizerJsonDictionary = {
    "null",
    "-1",
    "4294967295",
    "1e308",
    "true",
    "[]",
    "{}",
    "\"\"",
    R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})",
    R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})",
    R"({"type":"Split","pattern":{"Regex":"(a*)*b"},"behavior":"Isolated"})",
    R"({"type":"Replace","pattern":{"String":""},"content":"xx"})",
    R"({"type":"Strip","content":"a","start":99,"stop":99})",
    R"({"type":"NFKD"},)",
    R"({"type":"UnicodeScripts"},)",
    R"("Regex":"(?<=a)\\p{L}+")",
    "\"SpecialToken\"",
    "\"id\"",
    "\"type_id\":7",
    "\"max_length\":1"};

// The model's vocabulary is most of a file, so most changes are made before it.
std::string changed(const std::string& file, Random& random) {
  const size_t model = file.find("\"model\"");
  if (model == std::string::npos || random.below(10) < 3) return mutate(file, kTokenizerJsonDictionary, random);
  return mutate(file.substr(0, model), kTokenizerJsonDictionary, random) + file.substr(model);
}

TEST(TokenizerJsonFuzz, MutatedFilesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  Random random(7);
  size_t read = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/text/data")) {
    if (entry.path().filename() == "expected.json" || entry.is_directory()) continue;
    const std::string file = read_file(entry.path());
    for (int i = 0; i < 200; ++i) {
      write_file(folder / "tokenizer.json", changed(file, random));
      try {
        const auto tokenizer = load_tokenizer(folder / "tokenizer.json");
        const std::vector<int32_t> ids =
            tokenizer->encode_for_model("The  café\t12,5 [MASK] \xF0\x9F\x99\x82 aaab").ids;
        tokenizer->decode(ids, true);
        ++read;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 100u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace attune

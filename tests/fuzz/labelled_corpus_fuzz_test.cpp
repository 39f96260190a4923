// Whatever a file of labelled texts holds: texts or attune::Error.

#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/base/random.h"
#include "attune/data/labelled_corpus.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

struct Case {
  LabelledFormat format;
  const char* name;
  std::string valid;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class LabelledCorpusFuzz : public testing::TestWithParam<Case> {};

TEST_P(LabelledCorpusFuzz, MutatedFilesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  const std::vector<std::string> dictionary{"\"",   "\"\"",     ",", "\n",        "\r\n",     "\t",          "\"\n",
                                            "\x80", "{",        "[", "\"label\"", "\"text\"", "1e999",       "\\ud800",
                                            "null", "\x1f\x8b", "}", ",,,,,,",    "label",    "\xEF\xBB\xBF"};
  Random random(20240606);
  constexpr int kRounds = 5000;
  int successes = 0;
  for (int round = 0; round < kRounds; ++round) {
    const bool needs_label = random.below(2) == 0;
    write_file(folder / "f", mutate(GetParam().valid, dictionary, random));
    try {
      for (const LabelledText& of :
           read_labelled(folder / "f", {.format = GetParam().format, .needs_label = needs_label})) {
        ASSERT_TRUE(valid_utf8(of.label));
        ASSERT_TRUE(valid_utf8(of.text));
        ASSERT_TRUE(valid_utf8(of.second));
        ASSERT_GT(of.line, 0);
        ASSERT_FALSE(needs_label && of.label.empty());
      }
      ++successes;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(successes, kRounds / 100);
  EXPECT_LT(successes, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Formats, LabelledCorpusFuzz,
                         testing::Values(Case{LabelledFormat::tsv, "tsv", "pos\tGrüße\nneg\tbad\tfilm\n\npos\t\n"},
                                         Case{LabelledFormat::csv, "csv",
                                              "id,text,label\r\n1,\"a \"\"b\"\",\nc\",pos\n2,Grüße,neg\n"},
                                         Case{LabelledFormat::jsonl, "jsonl",
                                              "{\"text\": \"Grüße\\n\\\"\", \"label\": \"pos\", \"id\": [1, {}]}\n"
                                              "{\"label\": 1, \"text\": \"\"}\n{\"label\": false, \"text\": \"x\"}\n"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace attune

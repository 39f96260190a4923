#include "attune/data/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

TEST(ReadPrompts, LinesThatAreNotOneObjectAreNamed) {
  const TemporaryFolder folder{memory_folder()};
  const std::vector<std::filesystem::path> files = {folder / "a.jsonl"};
  const WhitespaceTokenizer tokenizer({"a", "b"});
  const std::string line = R"({"prompt": "a", "answer": "b"})";
  write_file(files[0], line + "\n");
  EXPECT_FALSE(read_prompts(files, tokenizer).ids.empty());
  const auto error = [&](const std::string& second) {
    write_file(files[0], line + "\n" + second + "\n");
    return message_of<DataError>([&] { read_prompts(files, tokenizer); });
  };
  EXPECT_THAT(error("a b"), ::testing::HasSubstr("a.jsonl:2: expected one JSON object a line: {\"prompt\": ..."));
  EXPECT_THAT(error("[" + line + "]"), ::testing::HasSubstr("a.jsonl:2: expected one JSON object a line"));
  EXPECT_THAT(error(R"({"prompt": "a")"), ::testing::HasSubstr("a.jsonl:2: is not valid JSON at byte 15"));
  EXPECT_THAT(error(line + '\0' + "junk"), ::testing::HasSubstr("a.jsonl:2: is not valid JSON at byte 31"));
  EXPECT_THAT(error(R"({"prompt": "a", "answer": "b", "answer": "a"})"),
              ::testing::HasSubstr("a.jsonl:2: JSON has key \"answer\" twice"));
}

}  // namespace
}  // namespace attune

#include "attune/data/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
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

TEST(ReadPromptTexts, GivesTheTextsAsTheyAreEncoded) {
  const TemporaryFolder folder{memory_folder()};
  write_file(folder / "a.jsonl", R"({"prompt": "caf\u00e9\n?", "answer": "oui"})"
                                 "\n\n"
                                 R"({"answer": "{", "note": 1, "prompt": ""})"
                                 "\n");
  const auto texts = [&](bool keeps_line_ends) {
    std::vector<std::string> all;
    read_prompt_texts({folder / "a.jsonl"}, keeps_line_ends, [&](const std::string& prompt, const std::string& answer) {
      all.insert(all.end(), {prompt, answer});
    });
    return all;
  };
  EXPECT_THAT(texts(true), ::testing::ElementsAre("café\n?", "oui", "", "{"));
  EXPECT_THAT(texts(false), ::testing::ElementsAre("café ?", "oui", "", "{"));
  write_file(folder / "a.jsonl", "{\"prompt\": \"a\"}\n");
  EXPECT_THAT(message_of<DataError>([&] { texts(true); }), ::testing::HasSubstr("a.jsonl:1: has no field \"answer\""));
  EXPECT_THROW(read_prompt_texts({}, true, [](const std::string&, const std::string&) {}), ConfigError);
}

// Counts the texts that it encodes.
class CountingWords final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view) const override {
    ++encoded;
    return {4};
  }
  int32_t vocab_size() const override { return 5; }
  std::string piece(int32_t) const override { return ""; }
  std::string kind() const override { return "counting"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}
  mutable std::atomic<int> encoded = 0;

 private:
  std::string join(const std::vector<int>&) const override { return ""; }
};

// Blocks are bounded by their bytes too: lines may have a MiB each.
TEST(ReadPrompts, LongLinesAreEncodedBeforeAllAreRead) {
  const TemporaryFolder folder{memory_folder()};
  const std::string line = R"({"prompt": "a", "answer": ")" + std::string(1'000'000, 'b') + "\"}\n";
  std::string text;
  for (int i = 0; i < 20; ++i) text += line;
  write_file(folder / "a.jsonl", text + "\xFF\n");  // is refused when it is read
  const CountingWords tokenizer;
  EXPECT_THROW(read_prompts({folder / "a.jsonl"}, tokenizer), DataError);
  EXPECT_EQ(tokenizer.encoded, 2 * 17);
}

}  // namespace
}  // namespace attune

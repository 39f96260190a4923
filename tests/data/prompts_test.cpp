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

TEST(ReadPrompts, WhatFollowsANulIsNotPassedOver) {
  const TemporaryFolder folder{memory_folder()};
  const std::vector<std::filesystem::path> files = {folder / "a.jsonl"};
  const WhitespaceTokenizer tokenizer({"a", "b"});
  const std::string line = R"({"prompt": "a", "answer": "b"})";
  write_file(files[0], line + "\n");
  EXPECT_FALSE(read_prompts(files, tokenizer).ids.empty());
  write_file(files[0], line + "\n" + line + '\0' + "junk\n");
  EXPECT_THAT(message_of<DataError>([&] { read_prompts(files, tokenizer); }),
              ::testing::HasSubstr("a.jsonl:2: expected one JSON object a line"));
}

}  // namespace
}  // namespace attune

#include "attune/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/errors.h"

namespace attune {
namespace {

std::string refusal_of(std::string_view text, const JsonLimits& limits = {}) {
  return message_of<FileError>([&] { parse_json(text, "a.json", limits); });
}

TEST(ParseJson, GivesWhatNlohmannGives) {
  const std::string text =
      R"({"b": [1, -2, 2.5, true, null, "x\u00e9"], "a": {"c": {}, "d": []}, "": 18446744073709551615})";
  EXPECT_EQ(parse_json(text, ""), Json::parse(text));
  EXPECT_EQ((parse_json<FileError, nlohmann::json>(text, "")), nlohmann::json::parse(text));
  for (const char* alone : {"1", "\"a\"", "null", "[]"}) EXPECT_EQ(parse_json(alone, ""), Json::parse(alone));
}

TEST(ParseJson, NamesWhatIsWrong) {
  EXPECT_EQ(refusal_of("{\"a\": }"), "a.json: is not valid JSON at byte 7");
  EXPECT_EQ(refusal_of("[1] 2"), "a.json: is not valid JSON at byte 5");
  EXPECT_EQ(refusal_of(""), "a.json: is not valid JSON at byte 1");
  EXPECT_EQ(refusal_of({"[1]\0", 4}), "a.json: is not valid JSON at byte 4");
  EXPECT_THAT(refusal_of("[1e999]"), testing::HasSubstr("a.json: is not valid JSON: "));
  EXPECT_EQ(refusal_of(R"([{"a": 1, "b": {"a": 1}, "a": 2}])"), "a.json: JSON has key \"a\" twice");
}

TEST(ParseJson, KeepsTheLimits) {
  EXPECT_EQ(refusal_of("[[{}]]", {.depth = 2}), "a.json: JSON is nested more than 2 levels deep");
  EXPECT_EQ(parse_json("[[1]]", "", {.depth = 2}).size(), 1u);
  EXPECT_EQ(refusal_of(R"({"a": {"b": 1}, "c": 1, "d": 1})", {.keys = 2}),
            "a.json: JSON has more than 2 keys in one object");
  EXPECT_EQ(refusal_of("[1, 2]", {.values = 3}), "a.json: JSON has more than 3 values");
  EXPECT_EQ(parse_json("[1, 2]", "", {.values = 4}).size(), 2u);
}

TEST(ParseJson, ListsOfManyObjectsTakeLinearTime) {
  std::string text = "[{}";
  for (int i = 1; i < 500000; ++i) text += ",{}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "]", "").size(), 500000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20))
      << "a parser that looks through the list again at the end of each object takes minutes";
}

}  // namespace
}  // namespace attune

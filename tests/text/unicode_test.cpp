#include "attune/text/unicode.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "attune/base/file.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

/// What Python says, by data/make_metric_data.py.
nlohmann::json python_data() {
  return nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
}

std::u32string code_points(std::string_view text) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) result.push_back(next_code_point(text, at));
  return result;
}

std::string utf8(std::u32string_view text) {
  std::string result;
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

TEST(Unicode, DecodesAndEscapesInvalidBytes) {
  EXPECT_EQ(code_points("aü中😀"), U"aü中😀");
  EXPECT_EQ(code_points("\xC3"), U"\xDCC3");                                // cut off
  EXPECT_EQ(code_points("\xC0\x80"), U"\xDCC0\xDC80");                      // overlong
  EXPECT_EQ(code_points("\xED\xA0\x80"), U"\xDCED\xDCA0\xDC80");            // a surrogate
  EXPECT_EQ(code_points("\xF4\x90\x80\x80"), U"\xDCF4\xDC90\xDC80\xDC80");  // above U+10FFFF
  EXPECT_EQ(code_points("\xE4\xB8x"), U"\xDCE4\xDCB8x");
}

RC_GTEST_PROP(Unicode, EveryByteStringComesBack, (const std::string& text)) {
  RC_ASSERT(utf8(code_points(text)) == text);
}

TEST(Unicode, EveryCodePointComesBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    std::size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), c);
    ASSERT_EQ(at, text.size());
  }
}

TEST(Unicode, SpacesArePythons) {
  const auto spaces = code_points(python_data().at("spaces").get<std::string>());
  ASSERT_EQ(spaces.size(), 29u);
  const std::set<char32_t> expected(spaces.begin(), spaces.end());
  for (char32_t c = 0; c < 0x110000; ++c) ASSERT_EQ(is_space(c), expected.contains(c)) << std::hex << +c;
}

TEST(Unicode, SplitsWords) {
  EXPECT_EQ(split_words(" a\u00A0\u3000bü \t"), (std::vector<std::string_view>{"a", "bü"}));
  EXPECT_EQ(split_words("\n"), std::vector<std::string_view>{});
  EXPECT_EQ(split_words(""), std::vector<std::string_view>{});
}

TEST(Unicode, LowerCaseIsPythons) {
  const auto data = python_data();
  const std::string all = data.at("capitals").at("all");
  const std::string expected = data.at("capitals").at("lower");
  const std::u32string capitals = code_points(all);
  const auto lower = split_words(expected);
  ASSERT_EQ(capitals.size(), lower.size());
  for (std::size_t i = 0; i < lower.size(); ++i) EXPECT_EQ(lowercase(utf8(capitals.substr(i, 1))), lower[i]);
  const std::set<char32_t> changing(capitals.begin(), capitals.end());
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (changing.contains(c) || (c >= 0xD800 && c < 0xE000)) continue;
    const std::string text = utf8(std::u32string_view(&c, 1));
    ASSERT_EQ(lowercase(text), text);
  }
  for (const auto& c : data.at("lowercase")) EXPECT_EQ(lowercase(c.at("text").get<std::string>()), c.at("lower"));
}

}  // namespace
}  // namespace attune

#include "attune/base/glob.h"

#include <gtest/gtest.h>

#include <string>

#include "attune/base/random.h"

namespace attune {
namespace {

TEST(Glob, AStarStandsForAnyTextAlsoForNone) {
  for (const char* pattern : {"*", "a*", "*c", "a*c", "abc", "*abc*", "a**c", "***", "*b*", "ab*c"})
    EXPECT_TRUE(matches_glob(pattern, "abc")) << pattern;
  for (const char* pattern : {"", "ab", "bc", "b*", "*b", "a*b", "abcd", "abc*c", "*d*", "a*b*d"})
    EXPECT_FALSE(matches_glob(pattern, "abc")) << pattern;
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("**", ""));
  EXPECT_TRUE(matches_glob("*ab", "aab"));
  EXPECT_TRUE(matches_glob("*a*ab", "abaab"));
}

// The definition: a star takes nothing, or one character more.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return matches_slowly(pattern.substr(1), text) || (!text.empty() && matches_slowly(pattern, text.substr(1)));
  return !text.empty() && pattern[0] == text[0] && matches_slowly(pattern.substr(1), text.substr(1));
}

TEST(Glob, EqualsTheDefinition) {
  Random random(1);
  const auto text_of = [&](std::string_view letters, size_t most) {
    std::string text(random.below(most + 1), ' ');
    for (char& c : text) c = letters[random.below(letters.size())];
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string pattern = text_of("ab*", 6), text = text_of("ab", 8);
    ASSERT_EQ(matches_glob(pattern, text), matches_slowly(pattern, text)) << pattern << " " << text;
  }
}

TEST(Glob, ManyStarsTakeNoLonger) {
  EXPECT_FALSE(matches_glob(std::string(1000, '*') + "x", std::string(1000, 'a')));
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern + "x", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace attune

#include "attune/text/huggingface/unicode.h"

#include <gtest/gtest.h>

namespace attune::huggingface {
namespace {

TEST(GraphemeEnd, MarksOfUnicode17JoinTheCharacterBeforeThem) {
  EXPECT_EQ(grapheme_end("e\u0301x", 0), 3u);
  EXPECT_EQ(grapheme_end("'\u1AE7 x", 0), 4u);
  EXPECT_EQ(grapheme_end("'\U0001E6E3 x", 0), 5u);
  EXPECT_EQ(grapheme_end("\r\nx", 0), 2u);
}

TEST(WithReplacements, OneStandsForTheLongestStartOfACharacter) {
  EXPECT_EQ(with_replacements("a\xF0\x9F\x98z"), "a\uFFFDz");
  EXPECT_EQ(with_replacements("\xF0\x9Fq\xE2\x82"), "\uFFFDq\uFFFD");
  EXPECT_EQ(with_replacements("\xC0\xAF\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD") << "overlong, surrogate";
  EXPECT_EQ(with_replacements("\xF5\x80é"), "\uFFFD\uFFFDé");
}

}  // namespace
}  // namespace attune::huggingface

#include "attune/text/huggingface/unicode.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace attune::huggingface {
namespace {

TEST(GraphemeEnd, MarksOfUnicode17JoinTheCharacterBeforeThem) {
  EXPECT_EQ(grapheme_end("e\u0301x", 0), 3u);
  EXPECT_EQ(grapheme_end("'\u1AE7 x", 0), 4u);
  EXPECT_EQ(grapheme_end("'\U0001E6E3 x", 0), 5u);
  EXPECT_EQ(grapheme_end("\r\nx", 0), 2u);
}

TEST(ScriptOf, IsThatOfUnicode9) {
  EXPECT_EQ(script_of(U'あ'), script_of(U'漢'));
  EXPECT_NE(script_of(U'a'), script_of(U'б'));
  EXPECT_EQ(script_of(0x589), script_of(U'.')) << "Armenian since";
  for (const char32_t c : {U' ', char32_t{0xE000}, char32_t{0x378}, char32_t{0x11D00}, char32_t{0x1CC00}})
    EXPECT_EQ(script_of(c), kAnyScript) << static_cast<uint32_t>(c);
}

// The view is longer than what it is of: it is refused by its length alone.
TEST(Normalize, ATextThatIcuCannotCountIsRefused) {
  std::string result;
  const std::string_view text(result.data(), size_t{1} << 31);
  EXPECT_EQ(message_of<DataError>([&] { normalize(NormalizationForm::nfd, text, result); }),
            "cannot normalize a text of 2147483648 bytes, at most 2147483647 are accepted");
}

TEST(WithReplacements, OneStandsForTheLongestStartOfACharacter) {
  EXPECT_EQ(with_replacements("a\xF0\x9F\x98z"), "a\uFFFDz");
  EXPECT_EQ(with_replacements("\xF0\x9Fq\xE2\x82"), "\uFFFDq\uFFFD");
  EXPECT_EQ(with_replacements("\xC0\xAF\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD") << "overlong, surrogate";
  EXPECT_EQ(with_replacements("\xF5\x80é"), "\uFFFD\uFFFDé");
}

}  // namespace
}  // namespace attune::huggingface

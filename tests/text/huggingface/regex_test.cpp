#include "attune/text/huggingface/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/errors.h"

namespace attune::huggingface {
namespace {

using ::testing::HasSubstr;

TEST(Regex, ClassesHaveCharactersThatPcre2DoesNotKnow) {
  EXPECT_THAT(translate_oniguruma("\\d", "x"), HasSubstr("\\x{1e4f0}-\\x{1e4f9}")) << "digits of Unicode 15";
  EXPECT_EQ(translate_oniguruma("\\p{Cf}", "x"), "[\\p{Cf}]");
}

// Each of these escapes stands for more than a thousand bytes.
TEST(Regex, AShortExpressionThatBecomesALongOneIsRefused) {
  std::string letters;
  for (int i = 0; i < 3000; ++i) letters += "\\p{L}";
  for (const std::string& expression : {letters, "[" + letters + "]"}) {
    const std::string message = message_of<FileError>([&] { make_regex(expression, "x.json"); });
    EXPECT_THAT(message, HasSubstr("is too large: it has more than 262144 bytes"));
  }
}

std::vector<std::pair<size_t, size_t>> matches(const std::string& expression, const std::string& text) {
  std::vector<std::pair<size_t, size_t>> found;
  make_regex(expression, "x")->for_each_match(text, [&](Match match) { found.emplace_back(match.begin, match.end); });
  return found;
}

using Places = std::vector<std::pair<size_t, size_t>>;

// The next two as Oniguruma has it.
TEST(Regex, AScriptHasNoPunctuationThatIsUsedWithIt) {
  EXPECT_EQ(matches("[\\p{Han}]+", "你好。世界"), (Places{{0, 6}, {9, 15}}));
  EXPECT_EQ(matches("\\p{Katakana}+", "カー・タ"), (Places{{0, 3}, {9, 12}}));
  for (const char* others : {"\\P{Hiragana}+", "[\\P{Hiragana}]+", "\\p{^hiragana}+"})
    EXPECT_EQ(matches(others, "あー。あ"), (Places{{3, 9}})) << others;
  EXPECT_EQ(matches("\\p{Lu}|\\p{Emoji_Presentation}", "aB🙂"), (Places{{1, 2}, {2, 6}}));
}

TEST(Regex, AnOptionWithoutAColonIsAGroup) {
  EXPECT_EQ(matches("q(?i)b|c", "qb c qC QC"), (Places{{0, 2}, {5, 7}}));
  EXPECT_EQ(matches("x(q(?i)b|c)z|y", "xqCz y xqCZ"), (Places{{0, 4}, {5, 6}}));
  EXPECT_EQ(matches("a(?i)b(?-i)c|d", "aBc aD d"), (Places{{0, 3}}));
  EXPECT_EQ(matches("(?i)b|c", "BC"), (Places{{0, 1}, {1, 2}}));
}

TEST(Regex, ALongMatchIsFoundWhereItBegins) {
  std::string text = "xé";
  for (int i = 0; i < 3000; ++i) text += "ab";
  EXPECT_EQ(matches("(?:ab)+c", text + "cabc"),
            (std::vector<std::pair<size_t, size_t>>{{3, text.size() + 1}, {text.size() + 1, text.size() + 4}}));
  EXPECT_TRUE(matches("(?:ab)+c", text).empty());
}

// Some 90,000 steps at each place, and one place for each byte.
TEST(Regex, ManyStepsAtManyPlacesAreAnError) {
  EXPECT_THAT(message_of<DataError>([] { matches("a{0,300}a{0,300}a{0,3}[^a]", std::string(1 << 14, 'a')); }),
              HasSubstr("cannot search a text of 16384 bytes"));
}

}  // namespace
}  // namespace attune::huggingface

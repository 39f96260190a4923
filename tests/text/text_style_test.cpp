#include "attune/text/text_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TextStyleCounts counts_of(const std::string& line, int times = 1) {
  TextStyleCounts counts;
  for (int i = 0; i < times; ++i) counts.add(line);
  return counts;
}

TEST(TextStyle, TellsHowPunctuationIsWritten) {
  EXPECT_EQ(counts_of("A dog , a cat .", 10).style().punctuation, Punctuation::separate);
  EXPECT_EQ(counts_of("A dog, a cat.", 10).style().punctuation, Punctuation::attached);
  EXPECT_EQ(counts_of("A dog, a cat .", 10).style().punctuation, Punctuation::mixed);
  EXPECT_EQ(counts_of("A dog , a cat .", 9).style().punctuation, Punctuation::mixed) << "too few to tell";
  EXPECT_EQ(counts_of("Mr. Smith has a dog , a cat , a cow , a goat , a hen , a pig , a duck , a goose .", 5)
                .style()
                .punctuation,
            Punctuation::mixed);  // one of nine is attached
}

TEST(TextStyle, TellsWhetherThereAreCapitals) {
  EXPECT_TRUE(counts_of("über die brücke geht ein hund", 60).style().lower_case);
  EXPECT_FALSE(counts_of("über die Brücke geht ein Hund", 60).style().lower_case);
  EXPECT_FALSE(counts_of("ein hund", 2).style().lower_case) << "too few to tell";
  EXPECT_FALSE(counts_of("我喜欢吃苹果 12 34", 500).style().lower_case) << "no letters that have a case";
}

TEST(TextStyle, SaysWhatDoesNotFit) {
  const TextStyle separate{.punctuation = Punctuation::separate}, attached{.punctuation = Punctuation::attached};
  EXPECT_THAT(counts_of("Where is the dog?").mismatch(separate).value_or(""), HasSubstr("(\"dog?\")"));
  EXPECT_FALSE(counts_of("Where is the dog ?").mismatch(separate));
  EXPECT_FALSE(counts_of("Where is the dog").mismatch(separate));
  EXPECT_TRUE(counts_of("Where is the dog ?").mismatch(attached));
  EXPECT_FALSE(counts_of("Where is the dog?").mismatch(attached));
  EXPECT_FALSE(counts_of("Where is the dog?").mismatch({}));
  EXPECT_THAT(counts_of("where is Paris").mismatch({.lower_case = true}).value_or(""), HasSubstr("(\"Paris\")"));
  EXPECT_FALSE(counts_of("where is it").mismatch({.lower_case = true}));
}

TEST(TextStyle, ACheckSaysOnceWhatDoesNotFit) {
  const std::vector<std::string> fits = {"Where is the dog ?"}, does_not = {"Where is the dog?", "Here."};
  TextStyleCheck check(TextStyle{.punctuation = Punctuation::separate});
  EXPECT_FALSE(check.add(fits));
  EXPECT_THAT(check.add(does_not).value_or(""), HasSubstr("(\"dog?\")"));
  EXPECT_FALSE(check.add(does_not));
  EXPECT_FALSE(TextStyleCheck(std::nullopt).add(does_not));
  TextStyleCheck late(TextStyle{.punctuation = Punctuation::separate});
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(late.add(fits));
  EXPECT_FALSE(late.add(std::vector<std::string>(2000, "Where is the dog?")));
}

TEST(TextStyle, IsReadFromTheFirstLinesOfFiles) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += "a dog sleeps in the shadow of a tree .\n";
  write_file(folder / "a", text);
  const TextStyle style = text_style_of({(folder / "a").string()});
  EXPECT_EQ(style.punctuation, Punctuation::separate);
  EXPECT_TRUE(style.lower_case);
}

}  // namespace
}  // namespace attune

#include "attune/serve/sentences.h"

#include <gtest/gtest.h>

#include <chrono>

#include "attune/base/random.h"

namespace attune::serve {
namespace {

std::vector<std::string> sentences(std::string_view text) {
  std::vector<std::string> found;
  for (const Sentence& s : split_sentences(text).sentences) found.emplace_back(s.text);
  return found;
}

using Texts = std::vector<std::string>;

TEST(Sentences, EndWithFullStopsAndTheirLike) {
  EXPECT_EQ(sentences("One. Two! Three? \"Four.\" Five"), (Texts{"One.", "Two!", "Three?", "\"Four.\"", "Five"}));
  EXPECT_EQ(sentences("Wait... no. Then he went (so they say.) Home."),
            (Texts{"Wait... no.", "Then he went (so they say.)", "Home."}));
  EXPECT_EQ(sentences("第一。第二！"), (Texts{"第一。", "第二！"}));
}

TEST(Sentences, AbbreviationsAndNumbersDoNotEndThem) {
  EXPECT_EQ(sentences("Dr. Smith met J. Doe at 3.15 p.m. on the 3. Mai."),
            (Texts{"Dr. Smith met J. Doe at 3.15 p.m. on the 3. Mai."}));
  EXPECT_EQ(sentences("See z.B. Berlin. Then go."), (Texts{"See z.B. Berlin.", "Then go."}));
}

TEST(Sentences, ALongTextWithoutSpacesTakesLinearTime) {
  std::string text;
  for (int i = 0; i < 350'000; ++i) text += "ab.";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(sentences(text + " Then usw. and on."), (Texts{text, "Then usw. and on."}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "quadratic time is minutes";
}

TEST(Sentences, LineBreaksEndThem) {
  EXPECT_EQ(sentences("a title\n\nand text\r\n"), (Texts{"a title", "and text"}));
  EXPECT_TRUE(sentences(" \n ").empty());
}

TEST(Sentences, PiecesTogetherAreTheText) {
  Random random(3);
  const std::string pieces[] = {"One", ".", " ", "\n", "?", "two", "\"", "。", "Dr", "é", "\u00a0", "3"};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (uint64_t n = random.below(30); n > 0; --n) text += pieces[random.below(std::size(pieces))];
    const SplitText split = split_sentences(text);
    std::string whole(split.space_before);
    for (const Sentence& s : split.sentences) {
      EXPECT_FALSE(s.text.empty());
      whole += std::string(s.text) + std::string(s.space_after);
    }
    EXPECT_EQ(whole, text);
  }
}

}  // namespace
}  // namespace attune::serve

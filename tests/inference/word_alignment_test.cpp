#include "attune/inference/word_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/text/character_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WordAlignment, TokensBelongToWordsOfTheText) {
  const WhitespaceTokenizer subwords({"a@@", "b@@", "c", "d"}, "@@");
  EXPECT_THAT(words_of_tokens(subwords, subwords.encode("a@@ b@@ c d a@@ c")), ElementsAre(0, 0, 0, 1, 2, 2));
  const auto characters = CharacterTokenizer::build_from_texts({" ab"});
  EXPECT_THAT(words_of_tokens(characters, characters.encode("ab  a b")), ElementsAre(0, 0, 1, 1, 1, 2, 2));
  EXPECT_THAT(words_of_tokens(characters, characters.encode(" a ")), ElementsAre(0, 0, 0));
  EXPECT_THAT(words_of_tokens(characters, characters.encode("  ")), ElementsAre(-1, -1));
  EXPECT_THAT(words_of_tokens(characters, {}), IsEmpty());
}

TEST(WordAlignment, PairsOfWordsInPharaohsFormat) {
  // Source tokens 0 and 1 are one word; token 3 would be eos.
  const std::vector<int32_t> source = {0, 0, 1}, target = {0, 1, 1, 2, 3}, alignment = {2, 0, 1, 3, 0};
  const WordAlignment pairs = align_words(source, target, alignment);
  EXPECT_EQ(pharaoh(pairs), "0-1 0-3 1-0");
  EXPECT_EQ(pharaoh({}), "");
}

}  // namespace
}  // namespace attune

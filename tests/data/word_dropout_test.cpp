#include "attune/data/word_dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attune/text/whitespace_tokenizer.h"
#include "tests/data/tokenizer_stub.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class WordDropoutTest : public ::testing::Test {
 protected:
  std::vector<int32_t> hidden(double share, uint64_t seed, uint64_t forward) const {
    std::vector<int32_t> tokens = text_;
    WordDropout(share, seed, forward).hide(tokens, tokenizer_);
    return tokens;
  }

  const WhitespaceTokenizer tokenizer_{{"a", "b"}};
  const std::vector<int32_t> text_ = [] {
    std::vector<int32_t> ids(2000, 4);
    ids.front() = 2;
    ids.back() = 3;
    return ids;
  }();
};

TEST_F(WordDropoutTest, HidesAShareOfTheWordsAndNoSpecialToken) {
  const std::vector<int32_t> tokens = hidden(0.3, 1, 7);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(tokens, tokenizer_.unk_id())), 600, 80);
  EXPECT_EQ(std::ranges::count(tokens, 4) + std::ranges::count(tokens, tokenizer_.unk_id()), 1998);
  EXPECT_EQ(tokens.front(), 2);
  EXPECT_EQ(tokens.back(), 3);
}

TEST_F(WordDropoutTest, IsAFunctionOfSeedAndForwardPass) {
  EXPECT_EQ(hidden(0.3, 1, 7), hidden(0.3, 1, 7));
  EXPECT_NE(hidden(0.3, 1, 7), hidden(0.3, 1, 8));
  EXPECT_NE(hidden(0.3, 1, 7), hidden(0.3, 2, 7));
  EXPECT_EQ(hidden(0, 1, 7), text_);
}

TEST_F(WordDropoutTest, TheTwoSidesOfAPairHaveDrawsOfTheirOwn) {
  WordDropout words(0.3, 1, 7);
  std::vector<int32_t> source = text_, target = text_;
  words.hide(source, tokenizer_);
  words.hide(target, tokenizer_);
  EXPECT_NE(source, target);
}

TEST_F(WordDropoutTest, NeedsAnUnknownToken) {
  const TokenizerStub without_unknown({.unk = -1});
  std::vector<int32_t> tokens = text_;
  EXPECT_THAT(message_of<ConfigError>([&] { WordDropout(0.3, 1, 1).hide(tokens, without_unknown); }),
              HasSubstr("train.word_dropout = 0.3: the tokenizer (stub) has no unknown token"));
  WordDropout(0, 1, 1).hide(tokens, without_unknown);
  EXPECT_EQ(tokens, text_);
}

}  // namespace
}  // namespace attune

#include "attune/serve/routes/scored_tokens.h"

#include <gtest/gtest.h>

#include "attune/base/json_fields.h"
#include "tests/serve/routes/byte_tokens.h"
#include "tests/support/temporary_folder.h"

namespace attune::serve {
namespace {

class ScoredTokensTest : public ::testing::Test {
 protected:
  // With itself and another one as the likeliest.
  void add(const char* token, const char* other) {
    const int32_t id = tokenizer_->token_id(token);
    const TokenScores scores{.log_probability = -1, .likeliest = {{id, -1.0}, {tokenizer_->token_id(other), -2.0}}};
    tokens_.add({.sample = 0, .token = id, .end = {}, .scores = &scores});
  }

  TemporaryFolder folder_;
  const std::unique_ptr<Tokenizer> tokenizer_ = write_tokenizer_with_bytes(folder_.path());
  const std::vector<int32_t> prompt_ = tokenizer_->encode("the dog");
  ScoredTokens tokens_ = ScoredTokens(*tokenizer_, prompt_, false);
};

TEST_F(ScoredTokensTest, ARunOfBytesIsShownAtItsLastOne) {
  add("a", "b");
  EXPECT_TRUE(tokens_.are_certain());
  add("<0xE2>", "b");
  EXPECT_FALSE(tokens_.are_certain());
  add("<0x82>", "b");
  add("<0xAC>", "b");
  EXPECT_FALSE(tokens_.are_certain()) << "one more byte would make it another text";
  add("b", "c");
  EXPECT_TRUE(tokens_.are_certain());
  const Json json = tokens_.take(false);
  EXPECT_EQ(json["tokens"], (Json{"a", "", "", "€", "b"}));
  EXPECT_EQ(json["text_offset"], (Json{0, 1, 1, 1, 2}));
  EXPECT_EQ(json["top_logprobs"][3], (Json{{"€", -1.0}, {"b", -2.0}}));
  EXPECT_EQ(json["top_logprobs"][4], (Json{{"b", -1.0}, {"c", -2.0}})) << "without the bytes before";
  add("c", "b");
  EXPECT_EQ(tokens_.take(false)["text_offset"], Json::array({3}));
  EXPECT_TRUE(tokens_.take(false).is_null());
}

TEST_F(ScoredTokensTest, AtTheEndTheLastOneHasTheRest) {
  add("a", "b");
  add("<0xE2>", "b");
  add("<0x82>", "b");
  tokens_.finish();
  EXPECT_TRUE(tokens_.are_certain());
  tokens_.finish();
  const Json json = tokens_.take(false);
  EXPECT_EQ(json["tokens"], (Json{"a", "", "\uFFFD\uFFFD"}));
  EXPECT_EQ(json["text_offset"], (Json{0, 1, 1}));
}

TEST_F(ScoredTokensTest, ASpecialTokenIsNoText) {
  add("a", "b");
  add("<0xC3>", "b");
  add("<0xA9>", "b");
  add("</s>", "b");
  tokens_.finish();
  const Json content = tokens_.take(true)["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[1]["token"], "");
  EXPECT_EQ(content[2]["token"], "é");
  EXPECT_EQ(content[2]["bytes"], (Json{0xC3, 0xA9}));
  EXPECT_EQ(content[2]["top_logprobs"][0]["token"], "é") << "the one that was taken";
  EXPECT_EQ(content[3]["token"], "</s>");
}

}  // namespace
}  // namespace attune::serve

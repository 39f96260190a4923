// What a sampling request may not draw: SamplingConfig's rules, with and without a draft.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attune/base/error.h"
#include "attune/inference/decoding/scheduler.h"
#include "tests/inference/decoding/random_language_model.h"

namespace attune {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kVocab = 12;

class SamplingRules : public testing::TestWithParam<bool> {  // with a draft
 protected:
  Tokens continuation(SamplingRequest request, const Tokens& prompt = {3, 7}) const {
    request.config.temperature = temperature_;
    request.config.special_tokens = true;
    if (GetParam())
      request.draft =
          std::make_shared<LanguageDecodingModel>(random_language_model(small_language_config(kVocab, 64), 2));
    Scheduler scheduler(std::make_shared<LanguageDecodingModel>(model_));
    SchedulerClient client(scheduler);
    client.submit(0, {.prompt = prompt, .search = request});
    for (;;)
      for (auto& [tag, result] : client.work()) {
        if (result.error) std::rethrow_exception(result.error);
        return result.samples.at(0).tokens;
      }
  }
  double temperature_ = 0;
  const std::shared_ptr<const DecoderLm> model_ = random_language_model(small_language_config(kVocab, 64));
};

INSTANTIATE_TEST_SUITE_P(Draft, SamplingRules, testing::Bool());

TEST_P(SamplingRules, NoPairOfTokensOccursTwice) {
  Tokens text = {3, 7};
  const Tokens more = continuation({.config = {.max_tokens = 40, .no_repeat_ngram_size = 2}});
  text.insert(text.end(), more.begin(), more.end());
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (size_t i = 0; i + 1 < text.size(); ++i) EXPECT_TRUE(pairs.insert({text[i], text[i + 1]}).second) << i;
}

TEST_P(SamplingRules, ATextIsAtLeastAsLongAsAsked) {
  const Tokens all = {0, 1, 2, 3, 4, 5};  // half of the vocabulary ends a text
  const Tokens free = continuation({.config = {.max_tokens = 30}, .eos = all});
  const Tokens found = continuation({.config = {.max_tokens = 30, .min_tokens = 8}, .eos = all});
  EXPECT_LT(free.size(), 8u);
  EXPECT_GE(found.size(), 9u);  // with the end
  for (size_t i = 0; i < 8; ++i) EXPECT_GT(found[i], 5) << i;
}

TEST_P(SamplingRules, TheFirstTokenIsNoneOfThoseSuppressedThere) {
  const int32_t first = continuation({.config = {.max_tokens = 1}}).at(0);
  EXPECT_NE(continuation({.config = {.max_tokens = 1, .suppressed_at_begin = {first}}}).at(0), first);
}

TEST_P(SamplingRules, ASuppressedTokenIsInNoText) {
  const Tokens free = continuation({.config = {.max_tokens = 30}});
  const SamplingConfig config = {.max_tokens = 30, .suppressed_tokens = {free.at(2), free.at(0)}};
  for (const int32_t token : continuation({.config = config})) EXPECT_NE(token, free.at(0));
  for (const int32_t token : continuation({.config = config})) EXPECT_NE(token, free.at(2));
}

// The reference asks for one token after the other, and looks for the phrases itself.
TEST_P(SamplingRules, ASuppressedPhraseIsInNoTextNorWithTheEndOfItsPrompt) {
  const Tokens prompt = {3, 7}, free = continuation({.config = {.max_tokens = 20}});
  const std::vector<std::vector<int64_t>> phrases = {
      {7, free.at(0)}, {free.at(3), free.at(4)}, {free.at(1), free.at(2), free.at(3)}, {5}};
  Tokens text = prompt;
  for (int i = 0; i < 20; ++i) {
    SamplingConfig config{.max_tokens = 1};
    for (const auto& phrase : phrases)
      if (std::equal(phrase.rbegin() + 1, phrase.rend(), text.rbegin()))
        config.suppressed_tokens.push_back(phrase.back());
    text.push_back(continuation({.config = config}, text).at(0));
  }
  const Tokens found = continuation({.config = {.max_tokens = 20, .suppressed_phrases = phrases}});
  EXPECT_EQ(found, Tokens(text.begin() + 2, text.end()));
  EXPECT_NE(found, free);
}

TEST_P(SamplingRules, ADrawnTextHasNoSuppressedPhrase) {
  temperature_ = 1;
  SamplingConfig config{.max_tokens = 40};
  for (int64_t first = 0; first < kVocab; ++first)
    for (int64_t step = 1; step < 8; ++step) config.suppressed_phrases.push_back({first, (first + step) % kVocab});
  for (config.seed = 1; config.seed < 6; ++config.seed) {
    Tokens text = {7};
    const Tokens more = continuation({.config = config});
    text.insert(text.end(), more.begin(), more.end());
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      const int64_t step = (text[i + 1] - text[i] + kVocab) % kVocab;
      EXPECT_TRUE(step == 0 || step >= 8) << i;
    }
  }
}

TEST_P(SamplingRules, ATextOfOneTokenGoesOnWithTheForcedOne) {
  const Tokens free = continuation({.config = {.max_tokens = 4}}, {3});
  const auto forced = static_cast<int32_t>((free.at(0) + 1) % kVocab);
  const Tokens found = continuation({.config = {.max_tokens = 4, .forced_first_token = forced}}, {3});
  EXPECT_EQ(found.at(0), forced);
  // What is suppressed at the begin is suppressed behind it.
  const Tokens other = continuation(
      {.config = {.max_tokens = 4, .suppressed_at_begin = {found.at(1)}, .forced_first_token = forced}}, {3});
  EXPECT_EQ(other.at(0), forced);
  EXPECT_NE(other.at(1), found.at(1));
  // A longer prompt has its second token.
  EXPECT_EQ(continuation({.config = {.max_tokens = 4, .forced_first_token = forced}}),
            continuation({.config = {.max_tokens = 4}}));
}

TEST_P(SamplingRules, AContinuationOfFullLengthEndsWithTheForcedToken) {
  const Tokens free = continuation({.config = {.max_tokens = 6}});
  const auto forced = static_cast<int32_t>((free.at(5) + 1) % kVocab);
  Tokens expected = free;
  expected.back() = forced;
  EXPECT_EQ(continuation({.config = {.max_tokens = 6, .forced_last_token = forced}}), expected);
}

TEST_P(SamplingRules, ForcedTokensThatTheModelDoesNotHaveAreRefused) {
  EXPECT_THROW(continuation({.config = {.forced_last_token = kVocab}}), ConfigError);
  EXPECT_THROW(continuation({.config = {.forced_first_token = kVocab}}), ConfigError);
  EXPECT_THROW(continuation({.config = {.suppressed_phrases = {{1, kVocab}}}}), ConfigError);
}

}  // namespace
}  // namespace attune

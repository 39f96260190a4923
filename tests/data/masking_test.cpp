#include "attune/data/masking.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/base/random.h"
#include "attune/text/character_tokenizer.h"
#include "tests/data/tokenizer_stub.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kVocabulary = 50;

MaskingOptions options_with(uint64_t seed = 1, int64_t step = 0) {
  return {.mask_id = 0, .vocab_size = kVocabulary, .special_ids = {0, 1, 2, 3}, .seed = seed, .step = step};
}

bool is_special(int32_t id) {
  return id < 4;
}

/// One sequence; bos and eos now and then.
Ids random_tokens(size_t size) {
  Random random(3);
  Ids tokens(size);
  for (int32_t& id : tokens) id = static_cast<int32_t>(2 + random.below(kVocabulary - 2));
  return tokens;
}

MaskedBatch mask(const Ids& tokens, const MaskingOptions& options) {
  return mask_tokens(tokens, Ids{0, static_cast<int32_t>(tokens.size())}, options);
}

TEST(MaskTokens, ChoosesAndReplacesInTheSharesOfThePaper) {
  const Ids tokens = random_tokens(400'000);
  const MaskedBatch batch = mask(tokens, options_with());
  const auto ordinary = static_cast<double>(std::count_if(tokens.begin(), tokens.end(), [](int id) { return id > 3; }));
  const auto chosen = static_cast<double>(batch.rows.size());
  double masked = 0, kept = 0;
  std::vector<double> drawn(kVocabulary);
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const int32_t now = batch.tokens[static_cast<size_t>(batch.rows[i])];
    masked += now == 0;
    kept += now == batch.labels[i];
    if (now != 0 && now != batch.labels[i]) ++drawn[static_cast<size_t>(now)];
  }
  const double random = 0.1 / (kVocabulary - 4);  // a drawn token may be the old one
  EXPECT_NEAR(chosen / ordinary, 0.15, 5 * std::sqrt(0.15 * 0.85 / ordinary));
  EXPECT_NEAR(masked / chosen, 0.8, 5 * std::sqrt(0.8 * 0.2 / chosen));
  EXPECT_NEAR(kept / chosen, 0.1 + random, 5 * std::sqrt(0.1 * 0.9 / chosen));
  for (int32_t id = 0; id < kVocabulary; ++id) {
    const double expected = is_special(id) ? 0 : random * chosen;
    EXPECT_NEAR(drawn[static_cast<size_t>(id)], expected, 5 * std::sqrt(expected)) << id;
  }
}

RC_GTEST_PROP(MaskTokens, RowsAndLabelsSayWhatWasChanged, ()) {
  const auto tokens = *rc::gen::container<Ids>(rc::gen::inRange(0, kVocabulary));
  MaskingOptions options = options_with(*rc::gen::arbitrary<uint64_t>(), *rc::gen::inRange<int64_t>(0, 1 << 20));
  options.probability = *rc::gen::element(0.01, 0.15, 0.9, 1.0);
  const auto cut = *rc::gen::inRange<int32_t>(0, static_cast<int32_t>(tokens.size()) + 1);
  const Ids offsets{0, cut, static_cast<int32_t>(tokens.size())};
  const MaskedBatch batch = mask_tokens(tokens, offsets, options);
  RC_ASSERT(batch.offsets == offsets);
  RC_ASSERT(batch.labels.size() == batch.rows.size());
  RC_ASSERT(std::is_sorted(batch.rows.begin(), batch.rows.end()));
  Ids restored = batch.tokens;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    RC_ASSERT(!is_special(batch.labels[i]));
    restored[static_cast<size_t>(batch.rows[i])] = batch.labels[i];
  }
  RC_ASSERT(restored == tokens);
  const auto ordinary = std::count_if(tokens.begin(), tokens.end(), [](int32_t id) { return !is_special(id); });
  RC_ASSERT(batch.rows.empty() == (ordinary == 0));
  if (options.probability == 1) RC_ASSERT(std::ssize(batch.rows) == ordinary);
}

TEST(MaskTokens, IsAPureFunctionOfSeedStepAndPlace) {
  const Ids tokens = random_tokens(1000);
  const auto rows = [&](uint64_t seed, int64_t step) { return mask(tokens, options_with(seed, step)).rows; };
  EXPECT_EQ(rows(1, 5), rows(1, 5));
  EXPECT_NE(rows(1, 5), rows(1, 6));
  EXPECT_NE(rows(1, 5), rows(2, 5));
  const MaskedBatch all = mask(tokens, options_with()),
                    half = mask({tokens.begin(), tokens.begin() + 500}, options_with());
  EXPECT_TRUE(std::equal(half.tokens.begin(), half.tokens.end(), all.tokens.begin())) << "a place is what counts";
}

TEST(MaskTokens, ChoosesOneOfAShortTextEvenly) {
  const Ids tokens{2, 9, 8, 7, 3};
  std::vector<int> counts(tokens.size());
  for (int64_t step = 0; step < 3000; ++step) {
    MaskingOptions options = options_with(1, step);
    options.probability = 1e-9;
    const MaskedBatch batch = mask(tokens, options);
    ASSERT_EQ(batch.rows.size(), 1u);
    ++counts[static_cast<size_t>(batch.rows[0])];
  }
  EXPECT_EQ(counts[0] + counts[4], 0);
  for (const size_t place : {1, 2, 3}) EXPECT_NEAR(counts[place], 1000, 130);  // 5 standard deviations
  EXPECT_TRUE(mask({2, 3}, options_with()).rows.empty());
  EXPECT_TRUE(mask({}, options_with()).rows.empty());
}

TEST(MaskTokens, SkipsSpecialIdsAnywhereInTheVocabulary) {
  MaskingOptions options{.probability = 1, .mask_id = 9, .vocab_size = 10, .special_ids = {9, 0, 4, 5, 0}};
  std::vector<int> seen(10);
  for (options.step = 0; options.step < 300; ++options.step)
    for (const int32_t id : mask({1, 1, 1, 1}, options).tokens) ++seen[static_cast<size_t>(id)];
  for (const size_t id : {0, 4, 5}) EXPECT_EQ(seen[id], 0) << id;
  for (const size_t id : {1, 2, 3, 6, 7, 8, 9}) EXPECT_GT(seen[id], 0) << id;
}

TEST(MaskTokens, NamesBadInput) {
  EXPECT_EQ(message_of<DataError>([] {
              mask({4, 50}, options_with());
            }),
            "mask_tokens: token 1 has the id 50, outside the vocabulary of 50");
  EXPECT_THROW(mask({-1}, options_with()), DataError);
  for (const Ids& offsets : {Ids{}, Ids{0}, Ids{1, 2}, Ids{0, 3}, Ids{0, 2, 1, 2}, Ids{0, -1}})
    EXPECT_EQ(message_of<DataError>([&] {
                mask_tokens(Ids{4, 5}, offsets, options_with());
              }),
              "mask_tokens: the " + std::to_string(offsets.size()) + " offsets do not rise from 0 to the 2 tokens");
  const auto config_error = [](auto&& change) {
    MaskingOptions options = options_with();
    change(options);
    return message_of<ConfigError>([&] { options.validate(); });
  };
  EXPECT_EQ(config_error([](auto& o) { o.probability = 0; }),
            "the masking probability = 0 is not above 0 and at most 1");
  EXPECT_EQ(config_error([](auto& o) { o.mask_id = 50; }), "mask_id = 50 is outside the vocabulary of 50");
  EXPECT_EQ(config_error([](auto& o) { o.special_ids = {-1}; }), "the special id -1 is outside the vocabulary of 50");
  EXPECT_EQ(config_error([](auto& o) { o.vocab_size = 4; }),
            "all 4 ids of the vocabulary are special, so that none can be masked");
}

TEST(MaskingOptions, TakesTheIdsOfATokenizer) {
  const MaskingOptions options = MaskingOptions::for_tokenizer(ByteTokenizer());
  EXPECT_EQ(options.mask_id, 0);
  EXPECT_EQ(options.vocab_size, 260);
  EXPECT_EQ(options.special_ids, (Ids{0, 1, 2, 3}));
  options.validate();
}

TEST(MaskingOptions, NeedsAPadOfItsOwn) {
  EXPECT_EQ(message_of<ConfigError>([] { MaskingOptions::for_tokenizer(TokenizerStub({.pad = 3, .eos = 3})); }),
            "the tokenizer has no <pad> of its own, which masking needs in place of [MASK]");
}

}  // namespace
}  // namespace attune

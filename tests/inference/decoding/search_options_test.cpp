// What the options of the search mean: against every output of a tiny vocabulary.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/decoding/scheduler.h"
#include "tests/inference/decoding/every_output.h"
#include "tests/inference/decoding/random_language_model.h"
#include "tests/inference/decoding/search_reference.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

using Predicate = std::function<bool(const Tokens&)>;

// The best outputs of all for which `holds`.
void expect_best(const Transformer& model, const BeamSearchOptions& options, const SentenceConstraints& constraints,
                 const Predicate& holds) {
  std::vector<Hypothesis> all = every_output(model, options.generation);
  const size_t before = all.size();
  std::erase_if(all, [&](const Hypothesis& h) { return !holds(h.tokens); });
  ASSERT_LT(all.size(), before) << "the option has to rule something out";
  std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  all.resize(std::min(all.size(), static_cast<size_t>(options.n_best)));
  const auto found = beam_search(model, pack_sentences({kSource}), options, std::span(&constraints, 1)).at(0);
  ASSERT_GE(found.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(found[i].tokens, all[i].tokens) << i;
    EXPECT_NEAR(found[i].score, all[i].score, 1e-4) << i;
    EXPECT_TRUE(found[i].finished);
  }
}

class SearchOptions : public ::testing::Test {
 protected:
  // A beam that holds every output.
  static GenerationConfig everything() { return {.beam_size = 1024, .max_length = kLength}; }
  const std::unique_ptr<Transformer> model_ = random_model(small_config(MultiHead{}, NormPlacement::pre, kVocab), 5);
};

bool contains(const Tokens& tokens, const Tokens& phrase) {
  return std::search(tokens.begin(), tokens.end(), phrase.begin(), phrase.end()) != tokens.end();
}

TEST_F(SearchOptions, MinLength) {
  for (const int64_t least : {1, 3, 4}) {
    GenerationConfig g = everything();
    g.min_length = least;
    expect_best(*model_, options_with(g, 8), {},
                [&](const Tokens& t) { return static_cast<int64_t>(t.size()) >= least; });
  }
}

TEST_F(SearchOptions, AMinLengthOfAllTokensLeavesNoEnd) {
  for (const int64_t beam : {1, 4}) {
    const GenerationConfig g{.beam_size = beam, .max_length = 8, .max_length_ratio = 0, .min_length = 8};
    g.validate();
    const Hypothesis best = beam_search(*model_, pack_sentences({kSource}), options_with(g)).at(0).at(0);
    EXPECT_EQ(best.tokens.size(), 8u);
    EXPECT_FALSE(best.finished);
  }
}

TEST_F(SearchOptions, NoRepeatedNgrams) {
  for (const int64_t n : {1, 2, 3}) {
    GenerationConfig g = everything();
    g.no_repeat_ngram_size = n;
    expect_best(*model_, options_with(g, 60), {}, [&](const Tokens& t) {
      std::set<Tokens> seen;
      for (size_t i = 0; i + static_cast<size_t>(n) <= t.size(); ++i)
        if (!seen.insert({t.begin() + static_cast<int>(i), t.begin() + static_cast<int>(i) + n}).second) return false;
      return true;
    });
  }
}

// Four different words are all that there are, and the end comes later.
TEST_F(SearchOptions, ADeadEndLeavesWhatLivedLast) {
  for (const bool renormalizes : {false, true}) {
    for (const int64_t beam : {1, 4}) {
      GenerationConfig g{.beam_size = beam, .max_length = 8, .min_length = 8, .no_repeat_ngram_size = 1};
      g.renormalize_logits = renormalizes;
      const auto found = beam_search(*model_, pack_sentences({kSource}), options_with(g, beam)).at(0);
      ASSERT_EQ(found.size(), static_cast<size_t>(beam));
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_THAT(found[i].tokens, ::testing::UnorderedElementsAre(1, 4, 5, 6));
        EXPECT_EQ(found[i].token_log_probabilities.size(), 4u);
        EXPECT_FALSE(found[i].finished);
        EXPECT_NEAR(found[i].score, found[i].log_probability / g.length_divisor(4), 1e-12);
        if (i > 0) {
          EXPECT_GE(found[i - 1].score, found[i].score);
          EXPECT_NE(found[i - 1].tokens, found[i].tokens);
        }
      }
    }
  }
}

TEST_F(SearchOptions, WhereNothingMayComeFirstTheOutputIsEmptyAndUnfinished) {
  GenerationConfig g{.beam_size = 2, .max_length = 8, .min_length = 1, .suppressed_tokens = {1, 4, 5, 6}};
  for (const auto normalization : {LengthNormalization::wu, LengthNormalization::power}) {
    g.length_normalization = normalization;
    const auto found = beam_search(*model_, pack_sentences({kSource}), options_with(g, 2)).at(0);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].tokens.empty());
    EXPECT_FALSE(found[0].finished);
    EXPECT_EQ(found[0].score, 0);
  }
}

// Of every output once, with the likeliest end.
TEST_F(SearchOptions, OutputsThatDifferInTheirEndAreOne) {
  constexpr int32_t kOtherEnd = 6;
  BeamSearchOptions options = options_with(everything(), 12);
  options.generation.eos_tokens = {kEos, kOtherEnd};
  std::vector<Hypothesis> all, prefixes = {{}};
  for (int64_t length = 1; length <= kLength; ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& h : prefixes) {
      const auto next = next_log_probabilities(*model_, kSource, h.tokens);
      Hypothesis ended = h;
      ended.log_probability += std::max(next[kEos], next[kOtherEnd]);
      ended.score = ended.log_probability / options.generation.length_divisor(length);
      all.push_back(ended);
      for (const int32_t token : {1, 4, 5}) {
        Hypothesis e = h;
        e.log_probability += next[static_cast<size_t>(token)];
        e.tokens.push_back(token);
        longer.push_back(e);
      }
    }
    prefixes = longer;
  }
  std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  const auto found = beam_search(*model_, pack_sentences({kSource}), options).at(0);
  ASSERT_EQ(found.size(), 12u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, all[i].tokens) << i;
    EXPECT_NEAR(found[i].score, all[i].score, 1e-4) << i;
    EXPECT_TRUE(found[i].finished) << i;
  }
}

TEST_F(SearchOptions, BannedPhrases) {
  for (const TokenSequences& banned : {TokenSequences{{5}}, {{4, 6}}, {{5, 5}, {1, 4}, {6}}, {{4, 4, 4}}}) {
    BeamSearchOptions options = options_with(everything(), 80);
    options.banned = banned;
    expect_best(*model_, options, {}, [&](const Tokens& t) {
      return std::none_of(banned.begin(), banned.end(), [&](const Tokens& b) { return contains(t, b); });
    });
  }
}

TEST_F(SearchOptions, SuppressedPhrases) {
  for (const TokenSequences& phrases :
       {TokenSequences{{4, 6}}, {{5, 5}, {1, 4}, {6}}, {{4, 4, 4}}, {{5, kEos}, {4, 1, kEos}}, {{kBos, 5}}}) {
    BeamSearchOptions options = options_with(everything(), 80);
    for (const Tokens& phrase : phrases)
      options.generation.suppressed_phrases.emplace_back(phrase.begin(), phrase.end());
    expect_best(*model_, options, {}, [&](const Tokens& output) {
      Tokens text = {kBos};  // what the decoder reads, with the end
      text.insert(text.end(), output.begin(), output.end());
      text.push_back(kEos);
      return std::none_of(phrases.begin(), phrases.end(), [&](const Tokens& p) { return contains(text, p); });
    });
  }
}

TEST_F(SearchOptions, SuppressedPhrasesAreCheckedAgainstTheModelAndWhatIsRequired) {
  BeamSearchOptions options = options_with(everything());
  const auto refusal = [&](const SentenceConstraints& constraints) {
    return message_of<ConfigError>(
        [&] { beam_search(*model_, pack_sentences({kSource}), options, std::span(&constraints, 1)); });
  };
  options.generation.suppressed_phrases = {{4, 6}};
  EXPECT_THAT(refusal({.required = {{5, 4, 6}}}), HasSubstr("a phrase of 3 tokens contains one that is suppressed"));
  options.generation.suppressed_phrases = {{4, kVocab}};
  EXPECT_THAT(refusal({}), HasSubstr("suppressed_phrases = 7: is outside the target vocabulary of 7"));
  options.generation.suppressed_phrases = {{}};
  EXPECT_THAT(refusal({}), HasSubstr("suppressed_phrases: a list without tokens"));
}

TEST_F(SearchOptions, RequiredPhrases) {
  for (const TokenSequences& required :
       {TokenSequences{{5}}, {{4, 6}}, {{5, 5, 4}}, {{5, 5}, {5, 4}}, {{6}, {4}, {1}}, {{4, 4}, {4, 4}}}) {
    expect_best(*model_, options_with(everything(), 30), {.required = required}, [&](const Tokens& t) {
      return std::all_of(required.begin(), required.end(), [&](const Tokens& r) { return contains(t, r); });
    });
  }
}

TEST_F(SearchOptions, Prefix) {
  for (const Tokens& prefix : {Tokens{1}, {6, 5}, {4, 4, 4}, {1, 1, 1, 1}}) {
    expect_best(*model_, options_with(everything(), 5), {.prefix = prefix}, [&](const Tokens& t) {
      return t.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), t.begin());
    });
  }
}

TEST_F(SearchOptions, PrefixAndPhraseTogether) {
  expect_best(*model_, options_with(everything(), 5), {.prefix = {6, 5}, .required = {{5, 4}}}, [&](const Tokens& t) {
    return t.size() >= 3 && t[0] == 6 && t[1] == 5 && contains(t, {5, 4});
  });
}

TEST_F(SearchOptions, RepetitionPenalty) {
  GenerationConfig g = everything();
  const auto plain = beam_search(*model_, pack_sentences({kSource}), options_with(g, 20)).at(0);
  g.repetition_penalty = 1.7;
  for (const bool of_log_probabilities : {false, true}) {
    g.penalize_log_probabilities = of_log_probabilities;
    expect_best(*model_, options_with(g, 20), {}, [](const Tokens& t) { return t != Tokens{1, 1, 1, 1}; });
    EXPECT_NE(beam_search(*model_, pack_sentences({kSource}), options_with(g, 20)).at(0)[5].score, plain[5].score);
  }
}

// A beam of a few keeps them by their log probabilities with the penalty, wherever these are among all tokens.
TEST_F(SearchOptions, ASmallBeamWithPenalizedLogProbabilities) {
  for (const double penalty : {0.3, 3.0}) {
    const GenerationConfig g{
        .beam_size = 2, .max_length = 1, .repetition_penalty = penalty, .penalize_log_probabilities = true};
    BeamSearchOptions options = options_with(g, 2);
    options.generation.special_tokens = true;
    options.generation.start_token = 5;
    options.generation.eos_tokens = {kEos};
    const auto found = beam_search(*model_, pack_sentences({kSource}), options).at(0);
    options.generation.repetition_penalty = 1;
    options.generation.beam_size = options.n_best = kVocab;
    auto all = beam_search(*model_, pack_sentences({kSource}), options).at(0);
    for (Hypothesis& h : all)
      if (h.tokens == Tokens{5}) h.log_probability *= penalty;
    std::sort(all.begin(), all.end(),
              [](const Hypothesis& a, const Hypothesis& b) { return a.log_probability > b.log_probability; });
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NEAR(std::max(found[0].log_probability, found[1].log_probability), all[0].log_probability, 1e-6);
    EXPECT_NEAR(std::min(found[0].log_probability, found[1].log_probability), all[1].log_probability, 1e-6);
  }
}

TEST_F(SearchOptions, WhatIsSuppressedAtTheBeginIsSuppressedBehindAForcedToken) {
  BeamSearchOptions options = options_with({.beam_size = 4, .max_length = 6, .min_length = 3, .forced_first_token = 5});
  const auto first = [&] { return beam_search(*model_, pack_sentences({kSource}), options).at(0).at(0).tokens; };
  const Tokens free = first();
  ASSERT_EQ(free.at(0), 5);
  options.generation.suppressed_at_begin = {free.at(1)};
  const Tokens found = first();
  EXPECT_EQ(found.at(0), 5);
  EXPECT_NE(found.at(1), free.at(1));
}

// The token before has been followed by all others but two.
TEST(SearchOptionsOfTheModel, PairsOfThePromptAreNotRepeated) {
  constexpr int32_t kTokens = 12, kLast = 3, kFree = 11;
  Tokens prompt;
  for (int32_t token = 0; token < kFree; ++token)
    if (token != kLast) prompt.insert(prompt.end(), {kLast, token});
  prompt.push_back(kLast);
  const std::shared_ptr<const DecoderLm> model = random_language_model(small_language_config(kTokens, 64));
  Scheduler scheduler(std::make_shared<LanguageDecodingModel>(model));
  SchedulerClient client(scheduler);
  const BeamSearchRequest search(options_with(
      {.beam_size = 4, .max_length = 6, .no_repeat_ngram_size = 2, .eos_tokens = {0}, .special_tokens = true}, 4));
  client.submit(0, {.prompt = prompt, .search = search});
  while (client.outstanding() > 0)
    for (auto& [tag, result] : client.work()) {
      ASSERT_EQ(result.error, nullptr);
      for (const Hypothesis& h : result.hypotheses) EXPECT_TRUE(h.tokens.at(0) == kLast || h.tokens.at(0) == kFree);
    }
}

// A small beam cannot hold the unlikely phrase without its banks.
TEST_F(SearchOptions, RequiredPhrasesAreFoundByASmallBeam) {
  const auto model = random_model(small_config(MultiHeadLatent{}, NormPlacement::pre), 3);
  token_bias(*model, kEos) += 2;
  for (int32_t token : {11, 12, 13}) token_bias(*model, token) = -12;
  const auto source = random_sentences(6, 8, 40);
  std::vector<SentenceConstraints> constraints(source.size(), {.required = {{11, 12}, {13}}});
  constraints[2] = {};
  const auto found =
      beam_search(*model, pack_sentences(source), options_with({.beam_size = 4, .max_length = 20}), constraints);
  int finished = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool both = contains(found[i].at(0).tokens, {11, 12}) && contains(found[i][0].tokens, {13});
    EXPECT_EQ(both, i != 2) << i;
    finished += found[i][0].finished ? 1 : 0;
  }
  EXPECT_GE(finished, 4);
}

// Also where those that the length limit cuts off rank by their scores alone.
TEST_F(SearchOptions, OutputsThatLackARequiredPhraseComeLast) {
  BeamSearchOptions options = options_with(everything(), 1024);
  options.generation.rank_unfinished = true;
  const SentenceConstraints constraints{.required = {{4, 6}}};
  const auto found = beam_search(*model_, pack_sentences({kSource}), options, std::span(&constraints, 1)).at(0);
  const auto has_phrase = [](const Hypothesis& h) { return contains(h.tokens, {4, 6}); };
  EXPECT_TRUE(std::is_partitioned(found.begin(), found.end(), has_phrase));
  const auto lacking = std::find_if_not(found.begin(), found.end(), has_phrase);
  ASSERT_NE(lacking, found.begin());
  ASSERT_NE(lacking, found.end());
  EXPECT_GT(lacking->score, std::prev(lacking)->score) << "the score alone would not rank it last";
  EXPECT_TRUE(std::is_sorted(found.begin(), lacking,
                             [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }));
  const auto finished = [](const Hypothesis& h) { return h.finished; };
  EXPECT_FALSE(std::is_partitioned(found.begin(), lacking, finished)) << "those that have it rank together";
}

// Its tokens have no eos then, as those of all outputs.
TEST_F(SearchOptions, NoLastTokenIsForcedWhereARequiredPhraseIsLacking) {
  BeamSearchOptions options = options_with(everything(), 1024);
  options.generation.forced_last_token = kEos;
  const SentenceConstraints constraints{.required = {{4, 6}}};
  const auto found = beam_search(*model_, pack_sentences({kSource}), options, std::span(&constraints, 1)).at(0);
  size_t lacking = 0;
  for (const Hypothesis& h : found) {
    EXPECT_FALSE(contains(h.tokens, {kEos}));
    if (contains(h.tokens, {4, 6})) continue;
    EXPECT_FALSE(h.finished);
    ++lacking;
  }
  EXPECT_GT(lacking, 0u);
}

TEST_F(SearchOptions, AForcedTokenTakesNoRoomOfThePrefix) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, kVocab), 5);
  token_bias(*model, kEos) += 30;
  BeamSearchOptions options = options_with({.beam_size = 2, .forced_first_token = 5});
  options.generation.max_length_ratio = 0.5;  // two tokens, but for the prefix
  options.generation.max_length_offset = 0;
  const SentenceConstraints constraints{.prefix = {4, 6, 4, 6}};
  const auto found = beam_search(*model, pack_sentences({kSource}), options, std::span(&constraints, 1)).at(0).at(0);
  EXPECT_EQ(found.tokens, (Tokens{5, 4, 6, 4, 6}));
  EXPECT_TRUE(found.finished);
}

TEST(SearchOptionsOfTheModel, OptionsDoNotLetABatchChangeAnAnswer) {
  const auto model = random_model(small_config(MultiHeadLatent{}, NormPlacement::pre));
  token_bias(*model, kEos) += 2;
  const auto source = random_sentences(24, 10, 40);
  BeamSearchOptions options = options_with({.beam_size = 4,
                                            .max_length = 12,
                                            .coverage_penalty = 0.2,
                                            .beam_groups = 2,
                                            .diversity_penalty = 0.5,
                                            .min_length = 2,
                                            .no_repeat_ngram_size = 2,
                                            .repetition_penalty = 1.2},
                                           3);
  options.banned = {{7, 8}, {9}};
  options.alignments = true;
  std::vector<SentenceConstraints> constraints(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (i % 3 == 0) constraints[i].prefix = {static_cast<int32_t>(10 + i % 5), 11};
    if (i % 4 == 1) constraints[i].required = {{20, 21}, {22}};
  }
  const auto whole = beam_search(*model, pack_sentences(source), options, constraints);
  for (size_t i = 0; i < source.size(); ++i) {
    const auto alone = beam_search(*model, pack_sentences({source[i]}), options, std::span(&constraints[i], 1)).at(0);
    ASSERT_EQ(alone.size(), whole[i].size());
    for (size_t h = 0; h < alone.size(); ++h) {
      EXPECT_EQ(alone[h].tokens, whole[i][h].tokens) << i;
      EXPECT_EQ(alone[h].score, whole[i][h].score) << i;
      EXPECT_EQ(alone[h].alignment, whole[i][h].alignment) << i;
    }
  }
}

TEST_F(SearchOptions, RefusalsNameWhatIsWrong) {
  const auto refusal = [&](const BeamSearchOptions& options, const SentenceConstraints& constraints) {
    return message_of<ConfigError>(
        [&] { beam_search(*model_, pack_sentences({kSource}), options, std::span(&constraints, 1)); });
  };
  BeamSearchOptions options = options_with({.max_length = 6});
  EXPECT_THAT(refusal(options, {.prefix = {9}}), HasSubstr("prefix = 9: is outside the target vocabulary of 7"));
  EXPECT_THAT(refusal(options, {.prefix = {kEos}}), HasSubstr("prefix: token 3 is pad, bos or eos"));
  EXPECT_THAT(refusal(options, {.required = {{}}}), HasSubstr("required: a phrase without tokens"));
  EXPECT_THAT(refusal(options, {.prefix = {4, 4}, .required = {{5, 5}, {6, 6}}}),
              HasSubstr("prefix and required: 7 tokens with eos, max_length = 6"));
  options.generation.forced_first_token = 5;
  EXPECT_THAT(refusal(options, {.prefix = {4, 4, 4, 4, 4}}),
              HasSubstr("prefix and required: 7 tokens with eos and forced_first_token, max_length = 6"));
  BeamSearchOptions one_token = options;  // without constraints nothing is asked of the length
  one_token.generation.max_length = 1;
  const SentenceConstraints none;
  EXPECT_NO_THROW(beam_search(*model_, pack_sentences({kSource}), one_token, std::span(&none, 1)));
  options.generation.forced_first_token = -1;
  EXPECT_THAT(refusal(options, {.required = TokenSequences(65, {4})}), HasSubstr("required: 65 phrases, at most 64"));
  options.banned = {{5, 6}};
  EXPECT_THAT(refusal(options, {.required = {{4, 5, 6}}}), HasSubstr("contains one that is banned"));
  options.banned = {};
  options.generation.max_length = 4000;
  options.banned = TokenSequences(9, std::vector<int32_t>(3999, 4));
  EXPECT_THAT(refusal(options, {}), HasSubstr("banned: the phrases have more than 32768 tokens in all"));
  options.banned = {{kBos}};
  EXPECT_THAT(refusal(options, {}), HasSubstr("banned: token 2"));
}

}  // namespace
}  // namespace attune

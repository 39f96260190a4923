#include "attune/data/lexicon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "attune/base/random.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kEos = 3;

// Source word s is translated by 40 + s; word 60 stands in every target sentence.
std::vector<ParallelExample> examples(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<ParallelExample> pairs(count);
  for (ParallelExample& e : pairs) {
    for (uint64_t n = 2 + random.below(6); n > 0; --n) {
      e.source.push_back(static_cast<int32_t>(4 + random.below(12)));
      e.target.push_back(e.source.back() + 40);
    }
    std::reverse(e.target.begin(), e.target.end());
    e.target.push_back(60);
    e.source.push_back(kEos);
    e.target.push_back(kEos);
  }
  return pairs;
}

TEST(Lexicon, FindsWhatGoesTogether) {
  const auto lexicon = learn_lexicon(examples(1, 300), 20, 70, {.iterations = 10, .best = 2});
  ASSERT_EQ(lexicon.size(), 20u);
  for (int32_t s = 4; s < 16; ++s) EXPECT_EQ(lexicon[static_cast<size_t>(s)].at(0), s + 40);
  for (const size_t s : {0, 3, 17}) EXPECT_TRUE(lexicon[s].empty()) << "eos and what does not occur";
}

// Model 1 as in the paper, over dense tables.
TEST(Lexicon, EqualsThePlainModel) {
  const auto pairs = examples(2, 40);
  std::map<std::pair<int32_t, int32_t>, double> t;
  const auto probability = [&](int32_t s, int32_t target) -> double& {
    return t.try_emplace({s, target}, 1.0).first->second;
  };
  for (int iteration = 0; iteration < 3; ++iteration) {
    std::map<std::pair<int32_t, int32_t>, double> count;
    std::map<int32_t, double> total;
    for (const ParallelExample& e : pairs) {
      std::vector<int32_t> source(e.source.begin(), e.source.end() - 1);
      source.push_back(99);
      for (auto target = e.target.begin(); target + 1 != e.target.end(); ++target) {
        double sum = 0;
        for (const int32_t s : source) sum += probability(s, *target);
        for (const int32_t s : source) {
          count[{s, *target}] += probability(s, *target) / sum;
          total[s] += probability(s, *target) / sum;
        }
      }
    }
    for (auto& [key, value] : t) value = count[key] / total[key.first];
  }
  const auto lexicon = learn_lexicon(pairs, 20, 70, {.iterations = 3, .best = 5});
  for (int32_t s = 4; s < 16; ++s) {
    const auto& best = lexicon[static_cast<size_t>(s)];
    std::vector<double> all;
    for (const auto& [key, value] : t)
      if (key.first == s) all.push_back(value);
    std::sort(all.rbegin(), all.rend());
    for (size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(probability(s, best[i]), all[i], 1e-9);
  }
}

TEST(Lexicon, FrequentTargets) {
  const std::vector<ParallelExample> pairs = {{{4, kEos}, {5, 6, 5, kEos}}, {{4, kEos}, {7, 6, 5, 8, kEos}}};
  EXPECT_THAT(frequent_targets(pairs, 9, 3), ElementsAre(5, 6, 7));
  EXPECT_THAT(frequent_targets(pairs, 9, 100), ElementsAre(5, 6, 7, 8));
}

TEST(Lexicon, Refusals) {
  const std::vector<ParallelExample> pairs = {{{4, kEos}, {5, 6, kEos}}};
  EXPECT_THAT(message_of<DataError>([&] { learn_lexicon(pairs, 4, 9); }), HasSubstr("source token 4"));
  EXPECT_THAT(message_of<DataError>([&] { learn_lexicon(pairs, 5, 6); }), HasSubstr("target token 6"));
  EXPECT_THAT(message_of<DataError>([&] { learn_lexicon(pairs, 5, 9, {.most_pairs = 3}); }),
              HasSubstr("more than 3 pairs"));
  EXPECT_THAT(message_of<ConfigError>([&] { learn_lexicon(pairs, 5, 9, {.best = 0}); }), HasSubstr("best = 0"));
}

}  // namespace
}  // namespace attune

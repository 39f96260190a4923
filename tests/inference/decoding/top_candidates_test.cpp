#include "attune/inference/decoding/top_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of every row.
CandidateLists every_row(const Tensor& logits, int64_t count, const std::vector<int32_t>& excluded = {},
                         const std::vector<CandidateRules>& rules = {}) {
  size_t wanted = 0;
  for (const CandidateRules& r : rules) wanted = std::max(wanted, r.wanted.size());
  CandidateLists lists;
  lists.reset(static_cast<size_t>(logits.size(0)), static_cast<size_t>(std::max<int64_t>(count, 0)) + wanted);
  std::vector<CandidateJob> jobs;
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const auto row = static_cast<size_t>(r);
    const CandidateQuery query{.count = count, .excluded = excluded, .rules = rules.empty() ? nullptr : &rules[row]};
    jobs.push_back({.row = {logits, r, logits.size(-1)}, .query = query, .room = lists.room(row)});
  }
  top_candidates(jobs);
  for (size_t r = 0; r < jobs.size(); ++r) {
    if (jobs[r].found < 0) fail<NumericError>("row {} is no distribution", r);
    lists.set_count(r, static_cast<size_t>(jobs[r].found));
  }
  return lists;
}

// Sorts everything.
std::vector<Candidate> naive(const float* x, int64_t vocab, int64_t count, const std::vector<int32_t>& excluded) {
  double sum = 0;
  const double most = *std::max_element(x, x + vocab);
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(x[i] - most);
  std::vector<Candidate> all;
  for (int32_t i = 0; i < vocab; ++i) {
    if (std::find(excluded.begin(), excluded.end(), i) == excluded.end() && x[i] > -kInfinity)
      all.push_back({i, x[i] - most - std::log(sum)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const Candidate& a, const Candidate& b) { return x[a.token] > x[b.token]; });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

TEST(TopCandidates, EqualSortingEverything) {
  Random random(5);
  for (const int64_t vocab : {1, 5, 16, 31, 64, 1000, 4099}) {
    const Tensor logits = Tensor::empty({6, vocab});
    for (float& x : logits.values<float>()) x = static_cast<float>(3 * random.normal());
    for (int64_t i = 0; i < vocab; ++i) {
      logits.values<float>()[i] = static_cast<float>(random.below(4));               // row 0: many equals
      logits.values<float>()[vocab + i] = static_cast<float>(i);                     // row 1: rising
      if (random.below(2) == 0) logits.values<float>()[2 * vocab + i] = -kInfinity;  // row 2: some impossible
    }
    logits.values<float>()[2 * vocab] = 1;
    for (const int64_t count : {1, 2, 8, 40}) {
      for (const std::vector<int32_t>& excluded : {std::vector<int32_t>{}, std::vector<int32_t>{0, 2}}) {
        const auto found = every_row(logits, count, excluded);
        ASSERT_EQ(found.size(), 6u);
        for (int64_t r = 0; r < 6; ++r) {
          const auto expected = naive(logits.data<float>() + r * vocab, vocab, count, excluded);
          const auto row = found[static_cast<size_t>(r)];
          ASSERT_EQ(row.size(), expected.size()) << "vocab " << vocab << " row " << r;
          for (size_t i = 0; i < row.size(); ++i) {
            EXPECT_EQ(row[i].token, expected[i].token) << "vocab " << vocab << " row " << r << " rank " << i;
            EXPECT_NEAR(row[i].log_probability, expected[i].log_probability,
                        1e-5 * (1 + std::abs(expected[i].log_probability)));
            EXPECT_LE(row[i].log_probability, 0);
          }
        }
      }
    }
  }
}

TEST(TopCandidates, TakesDoubles) {
  const Tensor logits = Tensor::from<double>({1, 3}, std::vector<double>{0, 1000, 999});
  const auto found = every_row(logits, 2);
  const auto row = found[0];
  EXPECT_EQ(row[0].token, 1);
  EXPECT_NEAR(row[0].log_probability, -std::log(1 + std::exp(-1.0)), 1e-12);
  EXPECT_EQ(row[1].token, 2);
}

TEST(TopCandidates, RefuseWhatIsNoDistribution) {
  const auto refusal = [](float bad) {
    const Tensor logits = Tensor::full({3, 20}, 0.5);
    logits.values<float>()[25] = bad;
    return message_of<NumericError>([&] { every_row(logits, 2); });
  };
  EXPECT_THAT(refusal(std::numeric_limits<float>::quiet_NaN()), HasSubstr("row 1 is no distribution"));
  EXPECT_THAT(refusal(kInfinity), HasSubstr("row 1 is no distribution"));
  EXPECT_THROW(every_row(Tensor::full({1, 4}, -kInfinity), 2), NumericError);
  EXPECT_THROW(every_row(Tensor::zeros({1, 0}), 2), NumericError);
  EXPECT_THROW(every_row(Tensor::zeros({4}), 2), ShapeError);
  EXPECT_THROW(every_row(Tensor::zeros({1, 4}), 0), ShapeError);
}

TEST(TopCandidates, RulesOfARow) {
  const Tensor logits = Tensor::from({4, 4}, std::vector<float>{4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1});
  const std::vector<CandidateRules> rules = {{},
                                             {.excluded = {0}},
                                             {.excluded = {2}, .wanted = {3, 0, 2}},
                                             {.excluded = {2}, .wanted = {2}, .only_wanted = true}};
  const auto found = every_row(logits, 2, {1}, rules);
  const auto tokens = [&](size_t r) {
    std::vector<int32_t> ids;
    for (const Candidate& c : found[r]) ids.push_back(c.token);
    return ids;
  };
  EXPECT_EQ(tokens(0), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(tokens(1), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(tokens(2), (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(tokens(3), (std::vector<int32_t>{2}));
  EXPECT_EQ(found[3][0].log_probability, found[0][1].log_probability) << "what is left out keeps its share";
  std::vector<Candidate> room(2);
  std::vector<CandidateJob> jobs;
  jobs.push_back({.row = {logits, 0, 4}, .query = {.count = 2, .excluded = {}, .rules = &rules[2]}, .room = room});
  EXPECT_THROW(top_candidates(jobs), ShapeError) << "no room for what is wanted";
  const std::vector<CandidateRules> outside(4, CandidateRules{.wanted = {4}});
  EXPECT_THROW(every_row(logits, 2, {}, outside), ShapeError);
}

TEST(TopCandidates, WhatIsLeftOutLosesItsShareWhereThatIsAskedFor) {
  const CandidateRules rules{.excluded = {3}}, forced{.wanted = {1}, .only_wanted = true};
  const std::vector<int32_t> excluded = {1, 9};  // 9 is in no row
  const auto first = [&](bool renormalize, const CandidateRules& of_row) {
    const Tensor logits = Tensor::from({1, 4}, std::vector<float>{1, 2, 3, 4});
    std::vector<Candidate> room(2);
    std::vector<CandidateJob> jobs;
    jobs.push_back({.row = {logits, 0, 4},
                    .query = {.excluded = excluded, .renormalize = renormalize, .rules = &of_row},
                    .room = room});
    top_candidates(jobs);
    return room.front();
  };
  EXPECT_EQ(first(true, rules).token, 2);
  EXPECT_NEAR(first(true, rules).log_probability, 3 - std::log(std::exp(1) + std::exp(3)), 1e-6);
  EXPECT_NEAR(first(true, {}).log_probability, 4 - std::log(std::exp(1) + std::exp(3) + std::exp(4)), 1e-6);
  const double all = std::log(std::exp(1) + std::exp(2) + std::exp(3) + std::exp(4));
  EXPECT_NEAR(first(false, rules).log_probability, 3 - all, 1e-6);
  EXPECT_NEAR(first(true, forced).log_probability, 2 - all, 1e-6) << "a prefix keeps what it has";
}

TEST(TopCandidates, RefusePenalizedTokensThatARowDoesNotHave) {
  const Tensor logits = Tensor::from({2, 4}, std::vector<float>{4, 3, 2, 1, 4, 3, 2, 1});
  std::vector<Candidate> room(1);
  for (const int32_t token : {-1, 3}) {
    const std::vector<int32_t> penalized = {0, token};
    std::vector<CandidateJob> jobs;  // in a row of 3 of the 4 columns
    jobs.push_back({.row = {logits, 1, 3}, .query = {.penalized = penalized, .penalty = 2}, .room = room});
    EXPECT_EQ(message_of<ShapeError>([&] { top_candidates(jobs); }),
              fmt::format("top_candidates: needs penalized tokens in [0, 3), found {}", token));
    EXPECT_EQ(logits.values<float>()[4], 4) << "no logit has changed";
  }
}

}  // namespace
}  // namespace attune

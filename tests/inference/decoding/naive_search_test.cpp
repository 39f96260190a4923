// Beam search against the search as one would write it down, without cache.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "attune/inference/decoding/beam_search.h"
#include "tests/inference/decoding/search_reference.h"
#include "tests/inference/random_model.h"

namespace attune {
namespace {

// Groups one after the other, everything sorted, nothing cached.
std::vector<Hypothesis> naive_search(const Transformer& model, const Tokens& source, const GenerationConfig& g,
                                     size_t n_best, double* finished_at_the_end = nullptr) {
  struct Group {
    std::vector<Hypothesis> live = {{}}, finished;
    bool done = false;
  };
  const auto width = static_cast<size_t>(g.beam_size / g.beam_groups);
  std::vector<Group> groups(static_cast<size_t>(g.beam_groups));
  for (int64_t step = 1; step <= g.max_length; ++step) {
    std::map<int32_t, int> taken;
    for (Group& group : groups) {
      if (group.done) continue;
      std::vector<std::pair<double, Hypothesis>> extended;
      for (const Hypothesis& h : group.live) {
        const auto next = next_log_probabilities(model, source, h.tokens);
        for (int32_t token = 0; token < static_cast<int32_t>(next.size()); ++token) {
          if (token == kPad || token == kBos) continue;
          Hypothesis e = h;
          e.log_probability += next[static_cast<size_t>(token)];
          e.score = e.log_probability / g.length_divisor(step);
          e.finished = token == kEos;
          if (!e.finished) e.tokens.push_back(token);
          extended.emplace_back(e.log_probability - g.diversity_penalty * taken[token], e);
        }
      }
      std::stable_sort(extended.begin(), extended.end(), [](auto& a, auto& b) { return a.first > b.first; });
      group.live.clear();
      for (size_t rank = 0; rank < extended.size() && group.live.size() < width; ++rank) {
        const Hypothesis& e = extended[rank].second;
        if (!e.finished) group.live.push_back(e);
        if (e.finished && rank < width) group.finished.push_back(e);
      }
      for (const Hypothesis& h : group.live) ++taken[h.tokens.back()];
      const double patience = g.early_stopping == EarlyStopping::patience ? g.patience : 1;
      group.done = g.early_stopping != EarlyStopping::bound && group.finished.size() >= std::min(n_best, width) &&
                   static_cast<double>(group.finished.size()) >= patience * static_cast<double>(width);
      if (g.early_stopping != EarlyStopping::heuristic || !group.done) continue;
      std::vector<double> scores;
      for (const Hypothesis& h : group.finished) scores.push_back(h.score);
      std::sort(scores.rbegin(), scores.rend());
      double best = -HUGE_VAL;
      for (const Hypothesis& h : group.live) best = std::max(best, h.score);
      group.done = best <= scores[width - 1];
    }
  }
  std::vector<Hypothesis> all;
  for (Group& group : groups) {
    std::stable_sort(group.finished.begin(), group.finished.end(), [](auto& a, auto& b) { return a.score > b.score; });
    if (finished_at_the_end != nullptr) *finished_at_the_end += static_cast<double>(group.finished.size());
    group.finished.resize(std::min({group.finished.size(), n_best, width}));
    all.insert(all.end(), group.finished.begin(), group.finished.end());
  }
  std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.score > b.score; });
  std::vector<Hypothesis> result;
  for (const Hypothesis& h : all)
    if (std::none_of(result.begin(), result.end(), [&](const Hypothesis& r) { return r.tokens == h.tokens; }))
      result.push_back(h);
  result.resize(std::min(result.size(), n_best));
  return result;
}

void expect_naive(const GenerationConfig& g, int64_t n_best, uint64_t seed) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, 14), seed);
  token_bias(*model, kEos) += 3;
  const auto source = random_sentences(5, 6, 14, seed);
  const auto found = beam_search(*model, pack_sentences(source), options_with(g, n_best));
  for (size_t i = 0; i < source.size(); ++i) {
    const auto expected = naive_search(*model, source[i], g, static_cast<size_t>(n_best));
    ASSERT_GE(found[i].size(), expected.size());
    for (size_t h = 0; h < expected.size(); ++h) {
      EXPECT_EQ(found[i][h].tokens, expected[h].tokens) << "seed " << seed << " sentence " << i;
      EXPECT_NEAR(found[i][h].score, expected[h].score, 1e-4);
    }
  }
}

TEST(NaiveSearch, EarlyStoppingEqualsTheNaiveSearch) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    GenerationConfig g{.beam_size = 4, .length_penalty = 2, .max_length = 8};
    g.early_stopping = EarlyStopping::first;
    expect_naive(g, 2, seed);
    g.early_stopping = EarlyStopping::patience;
    for (const double patience : {0.25, 0.75, 1.5, 2.0}) {
      g.patience = patience;
      expect_naive(g, 2, seed);
    }
    g.early_stopping = EarlyStopping::heuristic;
    for (const double penalty : {0.5, 1.0, 3.0}) {
      g.length_penalty = penalty;
      expect_naive(g, 2, seed);
    }
  }
}

TEST(NaiveSearch, StoppingRulesDiffer) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, 12), 13);
  token_bias(*model, kEos) += 5;
  const PackedTokens source = pack_sentences(random_sentences(12, 6, 12, 13));
  const auto best = [&](EarlyStopping rule, double patience) {
    GenerationConfig g{
        .beam_size = 3, .length_penalty = 3, .max_length = 8, .early_stopping = rule, .patience = patience};
    std::vector<double> scores;
    for (const auto& h : beam_search(*model, source, options_with(g))) scores.push_back(h.at(0).score);
    return scores;
  };
  const auto bound = best(EarlyStopping::bound, 1), first = best(EarlyStopping::first, 1);
  const auto heuristic = best(EarlyStopping::heuristic, 1);
  EXPECT_NE(heuristic, first);
  EXPECT_EQ(first, best(EarlyStopping::patience, 1));
  EXPECT_EQ(bound, best(EarlyStopping::patience, 100)) << "who is patient enough finds what there is";
  double gap = 0;
  for (size_t i = 0; i < bound.size(); ++i) {
    EXPECT_GE(bound[i], first[i]);
    EXPECT_GE(bound[i], heuristic[i]);
    EXPECT_GE(heuristic[i], first[i]) << "which ends no later";
    gap += bound[i] - first[i];
  }
  EXPECT_GT(gap, 0);
}

TEST(NaiveSearch, DiverseGroupsEqualTheNaiveSearch) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const auto& [groups, penalty] : {std::pair{2, 0.7}, std::pair{3, 2.5}, std::pair{6, 5.0}, std::pair{2, 0.0}}) {
      GenerationConfig g{.beam_size = 6, .max_length = 7, .beam_groups = groups, .diversity_penalty = penalty};
      expect_naive(g, 6, seed);
    }
  }
}

TEST(NaiveSearch, APenaltyMakesDiverse) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre), 2);
  token_bias(*model, kEos) += 2;
  const PackedTokens source = pack_sentences(random_sentences(8, 6, 40));
  const auto first_tokens = [&](double penalty) {
    GenerationConfig g{.beam_size = 4, .max_length = 8, .beam_groups = 4, .diversity_penalty = penalty};
    size_t count = 0;
    for (const auto& hypotheses : beam_search(*model, source, options_with(g, 4))) {
      std::set<int32_t> different;
      for (const Hypothesis& h : hypotheses) different.insert(h.tokens.empty() ? kEos : h.tokens[0]);
      count += different.size();
    }
    return count;
  };
  EXPECT_EQ(first_tokens(0), 8u) << "four groups that all do the same";
  EXPECT_GT(first_tokens(20), 16u);
}

}  // namespace
}  // namespace attune

#include "attune/inference/decoding/beam_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using Sentences = std::vector<std::vector<int32_t>>;

constexpr int32_t kPad = 0, kBos = 2, kEos = 3;

BeamSearchOptions options_with(int64_t beam_size, int64_t n_best, int64_t max_length) {
  BeamSearchOptions options;
  options.generation = {.beam_size = beam_size, .max_length = max_length, .max_length_ratio = 0};
  options.n_best = n_best;
  return options;
}

// log p(token | source, bos + prefix) for every token, from a pass without cache, in double.
std::vector<double> next_log_probabilities(const Transformer& model, const std::vector<int32_t>& source,
                                           const std::vector<int32_t>& prefix) {
  const NoGrad no_grad;
  std::vector<int32_t> input = {kBos};
  input.insert(input.end(), prefix.begin(), prefix.end());
  const PackedTokens src = pack_sentences({source});
  const Tensor hidden = model.decode(model.encode(src), src.sequences, pack_sentences({input}));
  const Tensor logits = model.project(hidden.rows(hidden.size(0) - 1, hidden.size(0)));
  std::vector<double> result(logits.values<float>().begin(), logits.values<float>().end());
  double sum = 0;
  for (const double x : result) sum += std::exp(x);
  for (double& x : result) x -= std::log(sum);
  return result;
}

std::vector<int32_t> naive_greedy(const Transformer& model, const std::vector<int32_t>& source, size_t max_length) {
  std::vector<int32_t> prefix;
  while (prefix.size() < max_length) {
    std::vector<double> next = next_log_probabilities(model, source, prefix);
    next[kPad] = next[kBos] = -1e30;
    const auto best = static_cast<int32_t>(std::max_element(next.begin(), next.end()) - next.begin());
    if (best == kEos) break;
    prefix.push_back(best);
  }
  return prefix;
}

// Beam search as one would write it down: nothing cached, everything sorted, always up to the length limit.
std::vector<Hypothesis> naive_beam_search(const Transformer& model, const std::vector<int32_t>& source,
                                          const BeamSearchOptions& options) {
  const GenerationConfig& g = options.generation;
  const auto beam = static_cast<size_t>(g.beam_size);
  const auto divisor = [&](size_t length) {
    const auto n = static_cast<double>(length);
    return std::pow(g.length_normalization == LengthNormalization::wu ? (5 + n) / 6 : n, g.length_penalty);
  };
  std::vector<Hypothesis> live = {{}}, finished;
  for (int64_t step = 1; step <= g.max_length; ++step) {
    std::vector<Hypothesis> extended;
    for (const Hypothesis& h : live) {
      const std::vector<double> next = next_log_probabilities(model, source, h.tokens);
      for (int32_t token = 0; token < static_cast<int32_t>(next.size()); ++token) {
        if (token == kPad || token == kBos) continue;
        Hypothesis e = h;
        e.log_probability += next[static_cast<size_t>(token)];
        e.score = e.log_probability / divisor(static_cast<size_t>(step));
        e.finished = token == kEos;
        if (!e.finished) e.tokens.push_back(token);
        extended.push_back(e);
      }
    }
    std::stable_sort(extended.begin(), extended.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.log_probability > b.log_probability; });
    live.clear();
    for (size_t rank = 0; rank < extended.size(); ++rank) {
      if (extended[rank].finished && rank < beam) finished.push_back(extended[rank]);
      if (!extended[rank].finished && live.size() < beam) live.push_back(extended[rank]);
    }
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  finished.insert(finished.end(), live.begin(), live.end());
  finished.resize(std::min(finished.size(), static_cast<size_t>(options.n_best)));
  return finished;
}

void expect_equal(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << what << ", hypothesis " << i;
    EXPECT_EQ(found[i].finished, expected[i].finished) << what << ", hypothesis " << i;
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-4) << what << ", hypothesis " << i;
    EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-4) << what << ", hypothesis " << i;
  }
}

TEST(BeamSearch, OfOneIsGreedy) {
  bool ended = false;
  for (const TransformerConfig& config : small_configs()) {
    const auto model = random_model(config);
    token_bias(*model, kEos) += 2;
    const Sentences source = random_sentences(6, 8, config.source_vocab);
    const auto found = beam_search(*model, pack_sentences(source), options_with(1, 1, 12));
    for (size_t i = 0; i < source.size(); ++i) {
      EXPECT_EQ(found[i].at(0).tokens, naive_greedy(*model, source[i], 12))
          << "sentence " << i << " of " << name_of(config);
      ended |= found[i].at(0).finished;
    }
  }
  EXPECT_TRUE(ended) << "the models have to end some sentences, else this says little";
}

TEST(BeamSearch, EqualsTheNaiveSearch) {
  int64_t finished = 0, unfinished = 0;
  uint64_t seed = 1;
  for (const TransformerConfig& config : small_configs()) {
    for (const double length_penalty : {0.0, 0.6, 1.5}) {
      const auto model = random_model(config, ++seed);
      token_bias(*model, kEos) += static_cast<float>(seed % 4);
      BeamSearchOptions options = options_with(seed % 2 == 0 ? 4 : 3, 3, 8);
      options.generation.early_stopping = EarlyStopping::bound;
      options.generation.length_penalty = length_penalty;
      if (seed % 3 == 0) options.generation.length_normalization = LengthNormalization::power;
      const Sentences source = random_sentences(4, 6, config.source_vocab, seed);
      const auto found = beam_search(*model, pack_sentences(source), options);
      ASSERT_EQ(found.size(), source.size());
      for (size_t i = 0; i < source.size(); ++i) {
        expect_equal(found[i], naive_beam_search(*model, source[i], options),
                     fmt::format("seed {}, sentence {}", seed, i));
        for (const Hypothesis& h : found[i]) ++(h.finished ? finished : unfinished);
      }
    }
  }
  EXPECT_GT(finished, 50);
  EXPECT_GT(unfinished, 10);
}

// A strong length penalty lets long hypotheses win that seemed to be beaten when the first ones were finished.
TEST(BeamSearch, WaitsForLongHypotheses) {
  for (const uint64_t seed : {13, 18, 21}) {
    const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, 12), seed);
    token_bias(*model, kEos) += 5;
    BeamSearchOptions options = options_with(3, 1, 8);
    options.generation.early_stopping = EarlyStopping::bound;
    options.generation.length_penalty = 3;
    const Sentences source = random_sentences(12, 6, 12, seed);
    const auto found = beam_search(*model, pack_sentences(source), options);
    for (size_t i = 0; i < source.size(); ++i)
      expect_equal(found[i], naive_beam_search(*model, source[i], options),
                   fmt::format("seed {}, sentence {}", seed, i));
  }
}

// All sequences over a small vocabulary; a beam that holds them all must find the best.
TEST(BeamSearch, OfEverythingFindsTheBestOfAll) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, 7), 5);
  const std::vector<int32_t> source = {5, 6, 4, kEos};
  const BeamSearchOptions options = options_with(400, 10, 4);
  std::vector<Hypothesis> all;
  std::vector<Hypothesis> prefixes = {{}};
  for (int64_t length = 1; length <= 4; ++length) {
    std::vector<Hypothesis> longer;
    for (const Hypothesis& h : prefixes) {
      const auto next = next_log_probabilities(*model, source, h.tokens);
      for (const int32_t token : {1, 3, 4, 5, 6}) {
        Hypothesis e = h;
        e.log_probability += next[static_cast<size_t>(token)];
        e.score = e.log_probability / options.generation.length_divisor(length);
        e.finished = token == kEos;
        if (!e.finished) e.tokens.push_back(token);
        (e.finished ? all : longer).push_back(e);
      }
    }
    prefixes = longer;
  }
  ASSERT_EQ(all.size(), 1u + 4u + 16u + 64u);
  std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  all.resize(10);
  expect_equal(beam_search(*model, pack_sentences({source}), options).at(0), all, "exhaustive");
}

TEST(BeamSearch, ABatchNeverChangesAnAnswer) {
  std::vector<TransformerConfig> configs = small_configs();
  for (const AttentionKind& kind : {AttentionKind(MultiHead{}), AttentionKind(MultiHeadLatent{})}) {
    TransformerConfig wide = small_config(kind, NormPlacement::pre, 1003);
    wide.d_model = 128;
    wide.d_ff = 512;
    configs.push_back(wide);
  }
  for (const TransformerConfig& config : configs) {
    const auto model = random_model(config);
    token_bias(*model, kEos) += 2;
    const Sentences source = random_sentences(64, 20, config.source_vocab);
    const BeamSearchOptions options = options_with(4, 2, 10);
    const auto whole = beam_search(*model, pack_sentences(source), options);
    for (const size_t size : {size_t{1}, size_t{7}}) {
      for (size_t begin = 0; begin < source.size(); begin += size) {
        const size_t end = std::min(begin + size, source.size());
        const auto part = beam_search(
            *model, pack_sentences({source.begin() + static_cast<int>(begin), source.begin() + static_cast<int>(end)}),
            options);
        for (size_t i = begin; i < end; ++i) {
          ASSERT_EQ(part[i - begin].size(), whole[i].size());
          for (size_t h = 0; h < whole[i].size(); ++h) {
            EXPECT_EQ(part[i - begin][h].tokens, whole[i][h].tokens);
            EXPECT_EQ(part[i - begin][h].score, whole[i][h].score)
                << "batch of " << size << ", sentence " << i << " of " << name_of(config);
          }
        }
      }
    }
  }
}

TEST(BeamSearch, HypothesesAreSortedAndScored) {
  const auto model = random_model(small_config(MultiHeadLatent{}, NormPlacement::pre));
  token_bias(*model, kEos) += 1;
  BeamSearchOptions options = options_with(6, 6, 15);
  for (const auto normalization : {LengthNormalization::wu, LengthNormalization::power}) {
    options.generation.length_normalization = normalization;
    for (const auto& hypotheses : beam_search(*model, pack_sentences(random_sentences(10, 8, 40)), options)) {
      ASSERT_EQ(hypotheses.size(), 6u);
      for (size_t i = 0; i < hypotheses.size(); ++i) {
        const Hypothesis& h = hypotheses[i];
        const auto length = static_cast<double>(h.tokens.size() + (h.finished ? 1 : 0));
        const double divisor =
            normalization == LengthNormalization::wu ? std::pow((5 + length) / 6, 0.6) : std::pow(length, 0.6);
        EXPECT_NEAR(h.score, h.log_probability / divisor, 1e-12);
        for (const int32_t token : h.tokens) EXPECT_TRUE(token != kPad && token != kBos && token != kEos);
        if (i == 0) continue;
        const Hypothesis& better = hypotheses[i - 1];
        EXPECT_NE(better.tokens, h.tokens);
        EXPECT_GE(std::pair(better.finished, better.score), std::pair(h.finished, h.score));
      }
    }
  }
}

TEST(BeamSearch, LengthIsLimited) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  token_bias(*model, kEos) = -1000;
  const Sentences source = random_sentences(6, 9, 40);
  BeamSearchOptions options = options_with(4, 2, 11);
  for (const auto& hypotheses : beam_search(*model, pack_sentences(source), options)) {
    EXPECT_EQ(hypotheses.at(0).tokens.size(), 11u);
    EXPECT_FALSE(hypotheses.at(0).finished);
  }
  options.generation.max_length_ratio = 1.5;
  options.generation.max_length_offset = 1;
  const auto found = beam_search(*model, pack_sentences(source), options);
  bool below = false;
  for (size_t i = 0; i < source.size(); ++i) {
    const auto limit = std::min<size_t>(11, static_cast<size_t>(1.5 * static_cast<double>(source[i].size())) + 1);
    below |= limit < 11;
    EXPECT_EQ(found[i].at(0).tokens.size(), limit);
  }
  EXPECT_TRUE(below);
}

// Up to the limit of a million steps this would take days.
TEST(BeamSearch, LearnedPositionsLimitTheLengthToo) {
  TransformerConfig config = small_config(MultiHead{}, NormPlacement::pre);
  config.positions = LearnedPositions{.max_length = 6};
  const auto model = random_model(config);
  token_bias(*model, kEos) = -1000;
  const auto found = beam_search(*model, pack_sentences({{5, 6, kEos}}), options_with(2, 1, 40));
  EXPECT_EQ(found.at(0).at(0).tokens.size(), 6u);
  EXPECT_FALSE(found.at(0).at(0).finished);
}

TEST(BeamSearch, StopsWhenNothingBetterCanCome) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  token_bias(*model, kEos) = 200;
  const auto found = beam_search(*model, pack_sentences(random_sentences(5, 9, 40)), options_with(4, 1, 1 << 14));
  for (const auto& hypotheses : found) {
    EXPECT_TRUE(hypotheses.at(0).finished);
    EXPECT_TRUE(hypotheses.at(0).tokens.empty());
  }
}

TEST(BeamSearch, PadBosAndWhatIsMorePadThatIsEos) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  token_bias(*model, kPad) = 300;
  token_bias(*model, kBos) = 300;
  token_bias(*model, kEos) = 250;  // likelier than all that is left
  const PackedTokens source = pack_sentences(random_sentences(3, 5, 40));
  BeamSearchOptions options = options_with(2, 1, 6);
  for (const auto& hypotheses : beam_search(*model, source, options)) EXPECT_TRUE(hypotheses.at(0).finished);
  options.special.pad = kEos;
  token_bias(*model, kPad) = 0;
  for (const auto& hypotheses : beam_search(*model, source, options)) {
    EXPECT_TRUE(hypotheses.at(0).finished);
    EXPECT_TRUE(hypotheses.at(0).tokens.empty());
  }
}

TEST(BeamSearch, TinyVocabularyAndNoSentences) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre, 4));  // <unk> is the only word
  const auto found = beam_search(*model, pack_sentences({{1, kEos}}), options_with(8, 8, 3));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].size(), 4u) << "0, 1 and 2 words, and 3 without end";
  EXPECT_TRUE(beam_search(*model, pack_sentences({}), options_with(4, 1, 5)).empty());
}

TEST(BeamSearch, RefusesOptionsThatDoNotFit) {
  const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  const PackedTokens source = pack_sentences({{5, kEos}});
  const auto refusal = [&](const BeamSearchOptions& options) {
    return message_of<ConfigError>([&] { beam_search(*model, source, options); });
  };
  EXPECT_THAT(refusal(options_with(4, 5, 9)), HasSubstr("n_best = 5: needs a number from 1 to beam_size = 4"));
  EXPECT_THAT(refusal(options_with(4, 0, 9)), HasSubstr("n_best = 0"));
  EXPECT_THAT(refusal(options_with(0, 1, 9)), HasSubstr("beam_size = 0"));
  BeamSearchOptions options;
  options.special.eos = 40;
  EXPECT_THAT(refusal(options), HasSubstr("eos = 40: is outside the target vocabulary of 40"));
  options.special.eos = options.special.bos;
  EXPECT_THAT(refusal(options), HasSubstr("bos = 2: is eos too"));
  token_bias(*model, 7) = std::nanf("");
  EXPECT_THROW(beam_search(*model, source, {}), NumericError);
}

}  // namespace
}  // namespace attune

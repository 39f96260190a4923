// Options of the search that look at the model's attention: the coverage penalty, alignments, and the scores of tokens.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/inference/decoding/beam_search.h"
#include "tests/inference/decoding/every_output.h"
#include "tests/inference/random_model.h"

namespace attune {
namespace {

// The attention of one pass without cache: what every token of the source got, eos of the output included.
std::vector<double> coverage_of(const Transformer& model, const Tokens& source, const Tokens& output) {
  const NoGrad no_grad;
  Tokens input = {kBos};
  input.insert(input.end(), output.begin(), output.end());
  const PackedTokens src = pack_sentences({source});
  const DecoderOutput decoded = model.decode_with_weights(model.encode(src), src.sequences, pack_sentences({input}));
  const Tensor& last = decoded.cross_weights.back();  // [1, heads, queries, keys]
  std::vector<double> coverage(source.size());
  for (int64_t i = 0; i < last.numel(); ++i)
    coverage[static_cast<size_t>(i % last.size(3))] += last.data<float>()[i] / static_cast<double>(last.size(1));
  return coverage;
}

TEST(SearchOptionsOfAttention, CoveragePenaltyIsWuEtAl) {
  for (const AttentionKind& kind : {AttentionKind(MultiHead{}), AttentionKind(MultiHeadLatent{.latent_dim = 12})}) {
    const auto model = random_model(small_config(kind, NormPlacement::pre, kVocab), 5);
    BeamSearchOptions options = options_with({.beam_size = 1024, .max_length = kLength, .coverage_penalty = 3}, 40);
    std::vector<Hypothesis> all = every_output(*model, options.generation);
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    std::sort(all.begin(), all.end(), better);
    const std::vector<Hypothesis> without = all;
    for (Hypothesis& h : all)
      for (const double c : coverage_of(*model, kSource, h.tokens)) h.score += 3 * std::log(std::min(c, 1.0));
    std::sort(all.begin(), all.end(), better);
    const auto same = [](const Hypothesis& a, const Hypothesis& b) { return a.tokens == b.tokens; };
    EXPECT_FALSE(std::equal(all.begin(), all.begin() + 40, without.begin(), same)) << "the penalty has to matter";
    const auto found = beam_search(*model, pack_sentences({kSource}), options).at(0);
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(found[i].tokens, all[i].tokens) << i;
      EXPECT_NEAR(found[i].score, all[i].score, 1e-4) << i;
    }
  }
}

TEST(SearchOptionsOfAttention, TokenScoresAndAlignmentsAreThoseOfOnePass) {
  const auto model = random_model(small_config(MultiHeadLatent{}, NormPlacement::post));
  token_bias(*model, kEos) += 1;
  BeamSearchOptions options = options_with({.beam_size = 4, .max_length = 9}, 4);
  options.alignments = true;
  const auto source = random_sentences(5, 7, 40);
  const auto found = beam_search(*model, pack_sentences(source), options);
  for (size_t s = 0; s < source.size(); ++s) {
    for (const Hypothesis& h : found[s]) {
      ASSERT_EQ(h.token_log_probabilities.size(), h.tokens.size() + (h.finished ? 1 : 0));
      ASSERT_EQ(h.alignment.size(), h.tokens.size());
      double sum = 0;
      for (size_t t = 0; t < h.token_log_probabilities.size(); ++t) {
        const auto next =
            next_log_probabilities(*model, source[s], {h.tokens.begin(), h.tokens.begin() + static_cast<int>(t)});
        EXPECT_NEAR(h.token_log_probabilities[t], next[static_cast<size_t>(t < h.tokens.size() ? h.tokens[t] : kEos)],
                    1e-4);
        sum += h.token_log_probabilities[t];
        if (t == h.tokens.size()) continue;
        auto before = coverage_of(*model, source[s], {h.tokens.begin(), h.tokens.begin() + static_cast<int>(t)});
        if (t > 0) {
          const auto earlier =
              coverage_of(*model, source[s], {h.tokens.begin(), h.tokens.begin() + static_cast<int>(t) - 1});
          for (size_t i = 0; i < before.size(); ++i) before[i] -= earlier[i];
        }
        const double most = *std::max_element(before.begin(), before.end());
        EXPECT_NEAR(before[static_cast<size_t>(h.alignment[t])], most, 1e-4);
      }
      EXPECT_NEAR(sum, h.log_probability, 1e-9);
    }
  }
}

}  // namespace
}  // namespace attune

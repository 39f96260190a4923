// Decoding step by step with a cache against the whole pass of training.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/generate/random_model.h"

namespace attune {
namespace {

using Sentences = std::vector<std::vector<int32_t>>;

// The largest difference of two rows of logits, relative to the largest logit.
double difference(const float* a, const float* b, int64_t n) {
  double most = 0, largest = 1e-30;
  for (int64_t i = 0; i < n; ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

// Logits after each token of each target, from one uncached pass: [target tokens, vocab].
Tensor uncached_logits(const Transformer& model, const Sentences& source, const Sentences& target) {
  const NoGrad no_grad;
  const PackedTokens src = pack_sentences(source);
  return model.project(model.decode(model.encode(src), src.sequences, pack_sentences(target)));
}

TEST(CachedDecoding, EveryStepEqualsTheWholePass) {
  for (const TransformerConfig& config : small_configs()) {
    const auto model = random_model(config);
    const NoGrad no_grad;
    const Sentences source = random_sentences(5, 9, config.source_vocab);
    const int64_t vocab = config.target_vocab;
    constexpr size_t kLength = 12;
    Sentences target = random_sentences(5, 1, vocab, 9);
    Random random(4);
    for (auto& sentence : target) {
      sentence.resize(kLength);
      for (int32_t& id : sentence) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab)));
    }
    const Tensor expected = uncached_logits(*model, source, target);

    const PackedTokens src = pack_sentences(source);
    KvCache cache = model->start(model->encode(src), src.sequences);
    for (size_t t = 0; t < kLength; ++t) {
      std::vector<int32_t> tokens;
      for (const auto& sentence : target) tokens.push_back(sentence[t]);
      const Tensor logits = model->step(tokens, cache);
      ASSERT_EQ(logits.shape(), Shape({5, vocab}));
      for (size_t s = 0; s < target.size(); ++s) {
        const float* whole = expected.data<float>() + static_cast<int64_t>(s * kLength + t) * vocab;
        EXPECT_LT(difference(logits.data<float>() + static_cast<int64_t>(s) * vocab, whole, vocab), 1e-5)
            << "step " << t << " sentence " << s << " of " << name_of(config);
      }
    }
  }
}

TEST(CachedDecoding, RowsMayBeDoubledDroppedAndReordered) {
  for (const TransformerConfig& config : small_configs()) {
    const auto model = random_model(config);
    const NoGrad no_grad;
    const Sentences source = random_sentences(3, 7, config.source_vocab);
    const PackedTokens src = pack_sentences(source);
    KvCache cache = model->start(model->encode(src), src.sequences);
    Sentences rows_source = source;
    Sentences rows_target(3);
    Random random(11);
    for (int step = 0; step < 10; ++step) {
      std::vector<int32_t> tokens;
      for (auto& prefix : rows_target) {
        prefix.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.target_vocab))));
        tokens.push_back(prefix.back());
      }
      const Tensor logits = model->step(tokens, cache);
      const Tensor expected = uncached_logits(*model, rows_source, rows_target);
      for (size_t r = 0; r < rows_target.size(); ++r) {
        const auto row = static_cast<int64_t>(r);
        EXPECT_LT(
            difference(logits.data<float>() + row * config.target_vocab,
                       expected.data<float>() + (row * (step + 1) + step) * config.target_vocab, config.target_vocab),
            1e-5)
            << "step " << step << " row " << r << " of " << name_of(config);
      }
      std::vector<int32_t> parents(1 + random.below(6));
      for (int32_t& parent : parents) parent = static_cast<int32_t>(random.below(rows_target.size()));
      cache.select(parents);
      Sentences next_source, next_target;
      for (const int32_t parent : parents) {
        next_source.push_back(rows_source[static_cast<size_t>(parent)]);
        next_target.push_back(rows_target[static_cast<size_t>(parent)]);
      }
      rows_source = next_source;
      rows_target = next_target;
    }
  }
}

}  // namespace
}  // namespace attune

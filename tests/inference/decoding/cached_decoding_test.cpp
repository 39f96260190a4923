// Decoding step by step with a cache against the whole pass of training.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "tests/inference/random_model.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

using Sentences = std::vector<std::vector<int32_t>>;

// The largest difference of two rows of logits, relative to the largest logit.
double difference(const float* a, const float* b, int64_t n) {
  LargestError error;
  for (int64_t i = 0; i < n; ++i) error.add(a[i], b[i]);
  return error.relative();
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

// Sentences come and go, rows are doubled and forget their last tokens; each has to read as if it were alone.
TEST(CachedDecoding, SentencesMayEnterAndLeaveAndRowsForget) {
  for (const TransformerConfig& config : {small_configs()[0], small_configs()[3]}) {
    const auto model = random_model(config);
    const NoGrad no_grad;
    KvCache cache = model->start();
    Sentences rows_source, rows_target;
    Random random(5);
    uint64_t seed = 1;
    int64_t most_self = 0, most_cross = 0;
    for (int step = 0; step < 60; ++step) {
      if (step % 4 == 0) {
        const Sentences more = random_sentences(2, 7, config.source_vocab, ++seed);
        const PackedTokens packed = pack_sentences(more);
        model->add(model->encode(packed), packed.sequences, cache);
        rows_source.insert(rows_source.end(), more.begin(), more.end());
        rows_target.resize(rows_source.size());
      }
      std::vector<int32_t> tokens;
      for (auto& prefix : rows_target) {
        prefix.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.target_vocab))));
        tokens.push_back(prefix.back());
      }
      const Tensor logits = model->step(tokens, cache);
      for (size_t r = 0; r < rows_target.size(); ++r) {
        const Tensor expected = uncached_logits(*model, {rows_source[r]}, {rows_target[r]});
        ASSERT_LT(
            difference(logits.data<float>() + static_cast<int64_t>(r) * config.target_vocab,
                       expected.data<float>() + (expected.size(0) - 1) * config.target_vocab, config.target_vocab),
            1e-5)
            << "step " << step << " row " << r;
      }
      const size_t forgetful = random.below(rows_target.size());
      rows_target[forgetful].resize(random.below(rows_target[forgetful].size() + 1));
      cache.truncate(static_cast<int64_t>(forgetful), static_cast<int32_t>(rows_target[forgetful].size()));
      std::vector<int32_t> parents;  // old rows leave first
      for (size_t r = rows_target.size() > 6 ? rows_target.size() - 6 : 0; r < rows_target.size(); ++r)
        for (uint64_t copies = random.below(3); copies > 0; --copies) parents.push_back(static_cast<int32_t>(r));
      if (parents.empty()) parents = {0};
      random.shuffle(parents);
      cache.select(parents);
      Sentences next_source, next_target;
      for (const int32_t parent : parents) {
        next_source.push_back(rows_source[static_cast<size_t>(parent)]);
        next_target.push_back(rows_target[static_cast<size_t>(parent)]);
      }
      rows_source = next_source;
      rows_target = next_target;
      most_self = std::max(most_self, cache.past.slots_in_use());
      most_cross = std::max(most_cross, cache.source.slots_in_use());
    }
    const PagedRows& self = cache.layers[0].self.keys;
    EXPECT_LE(self.size(), most_self + 14) << "slots that are free are used again";
    EXPECT_LE(cache.layers[0].cross.keys.size(), most_cross + 16);
    cache.select({});
    EXPECT_EQ(cache.past.slots_in_use(), 0);
    EXPECT_EQ(cache.source.slots_in_use(), 0);
  }
}

TEST(CachedDecoding, SeveralTokensAtOnceEqualOneAfterTheOther) {
  for (const TransformerConfig& config : small_configs()) {
    const auto model = random_model(config);
    const NoGrad no_grad;
    const PackedTokens src = pack_sentences(random_sentences(3, 6, config.source_vocab));
    const Tensor memory = model->encode(src);
    KvCache together = model->start(memory, src.sequences), apart = model->start(memory, src.sequences);
    Random random(6);
    for (const std::vector<int32_t>& counts : {std::vector<int32_t>{2, 1, 3}, {1, 1, 1}, {0, 4, 1}}) {
      std::vector<Tensor> rows;
      const auto tokens = static_cast<int64_t>(counts[0] + counts[1] + counts[2]);
      Tensor x = Tensor::zeros({tokens, config.d_model});
      for (float& value : x.values<float>()) value = static_cast<float>(random.normal());
      const Tensor found = model->decoder().steps(x, counts, together.positions(counts), together).states;
      int64_t at = 0;
      for (size_t r = 0; r < 3; ++r) {
        for (int32_t i = 0; i < counts[r]; ++i, ++at) {
          std::vector<int32_t> one(3, 0);
          one[r] = 1;
          const Tensor expected = model->decoder().steps(x.rows(at, at + 1), one, apart.positions(one), apart).states;
          EXPECT_LT(difference(found.data<float>() + at * config.d_model, expected.data<float>(), config.d_model),
                    1e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attune

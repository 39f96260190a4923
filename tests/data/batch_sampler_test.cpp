#include "attune/data/batch_sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attune/base/random.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using Lengths = std::vector<std::pair<int32_t, int32_t>>;
using Batches = std::vector<Ids>;

Lengths generate_lengths() {
  return *rc::gen::container<Lengths>(rc::gen::pair(rc::gen::inRange(0, 120), rc::gen::inRange(1, 120)));
}

BatchSamplerOptions generate_options() {
  return {.max_tokens = *rc::gen::inRange<int64_t>(1, 400),
          .max_sentences = *rc::gen::inRange<int64_t>(0, 6),
          .seed = *rc::gen::arbitrary<uint64_t>(),
          .shuffle = *rc::gen::arbitrary<bool>()};
}

/// Lengths like those of real sentences: log-normal about 20 tokens, the target in proportion to the source.
Lengths sentence_lengths(size_t size) {
  Random random(5);
  Lengths lengths;
  for (size_t i = 0; i < size; ++i) {
    const double source = std::clamp(std::exp(3.0 + 0.5 * random.normal()), 2.0, 250.0);
    const double target = std::clamp(source * std::exp(0.15 * random.normal()), 2.0, 250.0);
    lengths.emplace_back(static_cast<int32_t>(source), static_cast<int32_t>(target));
  }
  return lengths;
}

std::pair<int64_t, int64_t> tokens_of(const Ids& batch, const Lengths& lengths) {
  std::pair<int64_t, int64_t> sum{0, 0};
  for (const int32_t i : batch) {
    sum.first += lengths[static_cast<size_t>(i)].first;
    sum.second += lengths[static_cast<size_t>(i)].second;
  }
  return sum;
}

RC_GTEST_PROP(BatchSampler, HasEveryExampleOnceWithinTheBudgets, ()) {
  const Lengths lengths = generate_lengths();
  const BatchSamplerOptions options = generate_options();
  Ids seen;
  for (const Ids& batch : BatchSampler(lengths, options).epoch(*rc::gen::inRange<int64_t>(0, 50))) {
    RC_ASSERT(!batch.empty());
    const auto [source, target] = tokens_of(batch, lengths);
    RC_ASSERT(batch.size() == 1 || (source <= options.max_tokens && target <= options.max_tokens));
    RC_ASSERT(options.max_sentences == 0 || static_cast<int64_t>(batch.size()) <= options.max_sentences);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::sort(seen.begin(), seen.end());
  Ids all(lengths.size());
  std::iota(all.begin(), all.end(), 0);
  RC_ASSERT(seen == all);
}

RC_GTEST_PROP(BatchSampler, IsAPureFunctionOfSeedAndEpoch, ()) {
  const Lengths lengths = generate_lengths();
  const BatchSamplerOptions options = generate_options();
  const BatchSampler first(lengths, options), second(lengths, options);
  const Batches expected = first.epoch(3);
  (void)second.epoch(7);
  RC_ASSERT(second.epoch(3) == expected);
}

TEST(BatchSampler, OtherEpochsAndSeedsGiveOtherBatches) {
  const Lengths lengths = sentence_lengths(2000);
  const BatchSampler sampler(lengths, {.max_tokens = 512});
  Batches zero = sampler.epoch(0), one = sampler.epoch(1),
          other = BatchSampler(lengths, {.max_tokens = 512, .seed = 2}).epoch(0);
  EXPECT_NE(zero, one);
  EXPECT_NE(zero, other);
  for (Batches* batches : {&zero, &one})
    for (Ids& batch : *batches) std::sort(batch.begin(), batch.end());
  std::sort(zero.begin(), zero.end());
  size_t common = 0;
  for (const Ids& batch : one) common += static_cast<size_t>(std::binary_search(zero.begin(), zero.end(), batch));
  EXPECT_LE(common, 2u) << "what goes together has to change as well, not only the order of the batches";
}

TEST(BatchSampler, FillsBatchesOfAlikeLengths) {
  const Lengths lengths = sentence_lengths(50'000);
  const Batches batches = BatchSampler(lengths, {.max_tokens = 4096}).epoch(0);
  double filled = 0, spread = 0;
  for (const Ids& batch : batches) {
    const auto [source, target] = tokens_of(batch, lengths);
    filled += static_cast<double>(std::max(source, target)) / 4096;
    int32_t shortest = 1000, longest = 0;
    for (const int32_t i : batch) {
      const auto [s, t] = lengths[static_cast<size_t>(i)];
      shortest = std::min(shortest, std::max(s, t));
      longest = std::max(longest, std::max(s, t));
    }
    spread += longest - shortest;
  }
  EXPECT_GT(filled / static_cast<double>(batches.size()), 0.97);
  EXPECT_LT(spread / static_cast<double>(batches.size()), 10);  // tokens; of the whole corpus it is more than 200
}

TEST(BatchSampler, MixesShortAndLongBatchesOverTheEpoch) {
  const Lengths lengths = sentence_lengths(20'000);
  const Batches batches = BatchSampler(lengths, {.max_tokens = 1024}).epoch(0);
  std::vector<double> mean_lengths;
  for (const Ids& batch : batches)
    mean_lengths.push_back(static_cast<double>(tokens_of(batch, lengths).first) / static_cast<double>(batch.size()));
  size_t rising = 0;
  for (size_t i = 1; i < mean_lengths.size(); ++i) rising += static_cast<size_t>(mean_lengths[i] > mean_lengths[i - 1]);
  const double share = static_cast<double>(rising) / static_cast<double>(mean_lengths.size());
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.6);
}

TEST(BatchSampler, UnshuffledKeepsTheOrder) {
  const BatchSampler sampler({{2, 3}, {9, 1}, {1, 1}, {4, 4}, {1, 2}}, {.max_tokens = 6, .shuffle = false});
  const Batches expected{{0}, {1}, {2, 3}, {4}};
  EXPECT_EQ(sampler.epoch(0), expected);
  EXPECT_EQ(sampler.epoch(1), expected);
  EXPECT_EQ(BatchSampler({}, {}).epoch(0), Batches{});
}

TEST(BatchSampler, NamesBadOptions) {
  EXPECT_EQ(message_of<ConfigError>([] { BatchSampler({}, {.max_tokens = 0}); }),
            "max_tokens = 0 is not between 1 and 2147483647");
  EXPECT_THROW(BatchSampler({}, {.max_sentences = -1}), ConfigError);
  EXPECT_EQ(message_of<DataError>([] { BatchSampler({{1, 1}, {1, -1}}, {}); }), "example 1 has a negative length");
}

TEST(Pack, LaysSentencesOneAfterTheOther) {
  const std::vector<ParallelExample> examples{{{10, 11, 3}, {20, 3}}, {{3}, {3}}, {{12, 3}, {21, 22, 3}}};
  const PackedBatch batch = pack(examples, Ids{2, 1, 0}, 2);
  EXPECT_EQ(batch.source, (Ids{12, 3, 3, 10, 11, 3}));
  EXPECT_EQ(batch.source_offsets, (Ids{0, 2, 3, 6}));
  EXPECT_EQ(batch.target_input, (Ids{2, 21, 22, 2, 2, 20}));
  EXPECT_EQ(batch.labels, (Ids{21, 22, 3, 3, 20, 3}));
  EXPECT_EQ(batch.target_offsets, (Ids{0, 3, 4, 6}));
  EXPECT_EQ(batch.sentences(), 3);
  EXPECT_EQ(batch.source_tokens(), 6);
  EXPECT_EQ(batch.target_tokens(), 6);
  EXPECT_EQ(pack(examples, {}, 2).sentences(), 0);
  EXPECT_EQ(lengths_of(examples), (Lengths{{3, 2}, {1, 1}, {2, 3}}));
}

TEST(Pack, RefusesWhatIsNoExample) {
  const std::vector<ParallelExample> examples{{{3}, {3}}, {{3}, {}}};
  EXPECT_EQ(message_of<DataError>([&] { pack(examples, Ids{0, 2}, 2); }), "example 2 is outside of the 2 examples");
  EXPECT_THROW(pack(examples, Ids{-1}, 2), DataError);
  EXPECT_EQ(message_of<DataError>([&] { pack(examples, Ids{1}, 2); }),
            "the target of example 1 is empty: it lacks eos");
}

}  // namespace
}  // namespace attune

#include "attune/data/token_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr ShardForm kForm = {.vocab = {1000, 1}};
constexpr BatchSamplerOptions kOptions = {.max_tokens = 24, .seed = 7};

/// Example i is i, i, ... (1 + i % 5 times).
TokenExamples numbered(int32_t begin, int32_t end) {
  TokenExamples examples;
  for (int32_t i = begin; i < end; ++i) {
    examples.sequences.ids.insert(examples.sequences.ids.end(), static_cast<size_t>(1 + i % 5), i);
    examples.sequences.offsets.push_back(examples.sequences.tokens());
  }
  return examples;
}

ShardedBatches<int32_t> batches_of(TokenCorpus corpus) {
  return {std::move(corpus), kOptions.seed,
          [](const TokenShard& shard, int64_t epoch) { return BatchSampler(shard.lengths(), kOptions).epoch(epoch); }};
}

class TokenCorpusTest : public ::testing::Test {
 protected:
  TokenCorpus corpus_of(const std::vector<int32_t>& borders) {
    std::vector<ShardFile> files;
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      const std::filesystem::path file = folder_ / std::to_string(i);
      const TokenExamples examples = numbered(borders[i], borders[i + 1]);
      write_token_shard(file, examples, kForm);
      files.push_back({file, borders[i + 1] - borders[i], examples.sequences.tokens()});
    }
    return TokenCorpus(files, kForm);
  }
  /// The examples of each batch, as what their ids say they are.
  static std::vector<std::vector<int32_t>> epoch_of(ShardedBatches<int32_t>& batches, int64_t epoch) {
    batches.begin(epoch);
    std::vector<std::vector<int32_t>> seen;
    for (int64_t i = 0; i < batches.size(); ++i) {
      const auto [shard, indices] = batches.at(i);
      std::vector<int32_t>& examples = seen.emplace_back();
      for (const int32_t index : indices) {
        std::vector<int32_t> ids;
        shard->append_sequence(index, ids);
        EXPECT_EQ(ids.size(), static_cast<size_t>(1 + ids[0] % 5));
        examples.push_back(ids[0]);
      }
    }
    return seen;
  }
  TemporaryFolder folder_;
};

TEST_F(TokenCorpusTest, EveryExampleIsInOneBatchOfAnEpoch) {
  ShardedBatches<int32_t> batches = batches_of(corpus_of({0, 40, 41, 100, 180}));
  std::set<std::vector<int32_t>> orders;
  for (const int64_t epoch : {0, 1, 2}) {
    std::multiset<int32_t> seen;
    std::vector<int32_t> order;
    for (const auto& batch : epoch_of(batches, epoch)) {
      seen.insert(batch.begin(), batch.end());
      order.insert(order.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(seen.size(), 180);
    EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 180);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3) << "epochs differ";
}

TEST_F(TokenCorpusTest, AnEpochIsAPureFunctionOfItsNumber) {
  ShardedBatches<int32_t> batches = batches_of(corpus_of({0, 30, 60, 90}));
  const auto first = epoch_of(batches, 1);
  epoch_of(batches, 0);
  EXPECT_EQ(epoch_of(batches, 1), first);
  // Whatever is asked for first, as by a run that resumes.
  ShardedBatches<int32_t> others = batches_of(corpus_of({0, 30, 60, 90}));
  others.begin(1);
  for (const int64_t i : {others.size() - 1, int64_t{0}, others.size() / 2}) {
    const auto [shard, indices] = others.at(i);
    std::vector<int32_t> ids;
    shard->append_sequence(indices[0], ids);
    EXPECT_EQ(ids[0], first[static_cast<size_t>(i)][0]) << i;
  }
  EXPECT_THROW(others.at(others.size()), DataError);
  EXPECT_THROW(others.at(-1), DataError);
}

TEST_F(TokenCorpusTest, OneShardIsBatchedAsTheSamplerDoes) {
  const TokenExamples examples = numbered(0, 100);
  TokenShard shard(TokenExamples(examples), kForm);
  const auto expected = BatchSampler(shard.lengths(), kOptions).epoch(3);
  ShardedBatches<int32_t> memory = batches_of(TokenCorpus(std::move(shard)));
  ShardedBatches<int32_t> file = batches_of(corpus_of({0, 100}));
  EXPECT_EQ(epoch_of(memory, 3), expected);
  EXPECT_EQ(epoch_of(file, 3), expected);
}

TEST_F(TokenCorpusTest, ShardsComeInRandomOrder) {
  std::map<int64_t, int> first;
  for (int64_t epoch = 0; epoch < 200; ++epoch) ++first[order_of_shards(4, 1, epoch)[0]];
  EXPECT_EQ(first.size(), 4);
  for (const auto& [shard, count] : first) EXPECT_GT(count, 25) << shard;
  EXPECT_NE(order_of_shards(20, 1, 0), order_of_shards(20, 2, 0));
}

TEST_F(TokenCorpusTest, AShardHasToBeWhatTheIndexTells) {
  TokenCorpus corpus = corpus_of({0, 10, 20});
  write_token_shard(folder_ / "1", numbered(10, 19), kForm);
  EXPECT_THAT(message_of<FileError>([&] { batches_of(corpus).begin(0); }),
              HasSubstr("/1: has 9 examples and 25 tokens, the index says 10 and 30"));
  std::filesystem::remove(folder_ / "1");
  EXPECT_THAT(message_of<FileError>([&] { batches_of(corpus).begin(0); }), HasSubstr("/1"));
}

}  // namespace
}  // namespace attune

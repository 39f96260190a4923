// Whatever a prepared folder holds: batches or attune::Error, and no more memory than the files' sizes explain.

#include <gtest/gtest.h>

#include <fstream>

#include "attune/base/json_fields.h"
#include "attune/data/token_corpus.h"
#include "attune/train/prepared_folder.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::string> kNumbers = {std::string(8, '\xff'),
                                           std::string(8, '\0'),
                                           std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8),
                                           std::string("\0\0\0\0\0\0\0\x80", 8),
                                           std::string("\x01\0\0\0", 4),
                                           std::string("\x02\0\0\0", 4)};
const std::vector<std::string> kJson = {"18446744073709551615",
                                        "-1",
                                        "1e308",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "null",
                                        "\"../x\"",
                                        "\"00000.tokens\"",
                                        "\"pairs\"",
                                        "\"labelled\"",
                                        "\"tokens\":",
                                        "\"shards\":",
                                        "[[[[",
                                        ",",
                                        "\\u0000",
                                        "\xFF"};
constexpr int64_t kMostMemory = (int64_t{64} << 20) + kKeptOfFreed;
constexpr ShardForm kForm = {.sides = 2, .vocab = {20, 20}};

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TokenExamples some_pairs() {
  TokenExamples examples;
  Random random(3);
  for (int i = 0; i < 12; ++i) {
    for (uint64_t n = 1 + random.below(4); n > 0; --n)
      examples.sequences.ids.push_back(static_cast<int32_t>(random.below(20)));
    examples.sequences.offsets.push_back(examples.sequences.tokens());
  }
  return examples;
}

bool shard_accepted(const std::filesystem::path& path) {
  try {
    auto shard = std::make_shared<const TokenShard>(path, kForm);
    for (const auto& batch : BatchSampler(shard->lengths(), {.max_tokens = 8}).epoch(0)) {
      const PackedBatch packed = pack_pairs(*shard, batch, 2);
      for (const int32_t id : packed.source) EXPECT_TRUE(id >= 0 && id < 20);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(TokenShardFuzz, MutatedShardsAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  write_token_shard(folder / "valid", some_pairs(), kForm);
  const std::string valid = read_file(folder / "valid");
  Random random(20261121);
  const int64_t before = peak_resident_bytes();
  int successes = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = mutate(valid, kNumbers, random);
    if (random.below(8) > 0) bytes.resize(valid.size());  // so that most reach what is behind the check of the size
    write(folder / "x", bytes);
    successes += shard_accepted(folder / "x") ? 1 : 0;
  }
  EXPECT_GT(successes, kRounds / 100) << "some mutations of ids are no errors";
  EXPECT_LT(successes, kRounds / 2);
  EXPECT_LT(peak_resident_bytes() - before, kMostMemory);
}

TEST(TokenShardFuzz, EveryTruncationIsRefused) {
  const TemporaryFolder folder(memory_folder());
  write_token_shard(folder / "valid", some_pairs(), kForm);
  const std::string valid = read_file(folder / "valid");
  for (size_t size = 0; size < valid.size(); ++size) {
    write(folder / "x", valid.substr(0, size));
    EXPECT_FALSE(shard_accepted(folder / "x")) << size << " of " << valid.size() << " bytes";
  }
  EXPECT_TRUE(shard_accepted(folder / "valid"));
}

TEST(TokenShardFuzz, MutatedIndicesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  PreparedWriter writer(folder / "valid", 10);
  write(writer.temporary() / "tokenizer.json", R"({"type": "bytes"})");
  writer.begin({.kind = PreparedKind::pairs,
                .source_vocab = 20,
                .target_vocab = 20,
                .options = {{"max_tokens_per_sentence", 256}}});
  for (int i = 0; i < 6; ++i) {
    writer.append(std::vector<int32_t>{4, 3});
    writer.end_sequence();
    writer.append(std::vector<int32_t>{5, 6, 3});
    writer.end_example();
  }
  writer.commit(6, 0, 0, 0);
  const std::string valid = read_file(folder / "valid" / "index.json");
  Random random(20261122);
  const int64_t before = peak_resident_bytes();
  int successes = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    write(folder / "valid" / "index.json", mutate(valid, kJson, random));
    try {
      const PreparedIndex index = read_prepared_index(folder / "valid");
      const TokenCorpus corpus = open_prepared(folder / "valid", index);
      for (int64_t i = 0; i < corpus.shards(); ++i) corpus.open(i);
      ++successes;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(successes, kRounds / 100) << "white space and digits of a hash are no errors";
  EXPECT_LT(successes, kRounds / 2);
  EXPECT_LT(peak_resident_bytes() - before, kMostMemory);
}

}  // namespace
}  // namespace attune

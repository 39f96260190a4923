#include "attune/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "attune/base/sha256.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<ParallelExample> kPairs = {{{4, 5, 3}, {6, 3}}, {{7, 3}, {8, 9, 9, 3}}, {{3}, {5, 3}}};
constexpr ShardForm kPairForm = {.sides = 2, .vocab = {10, 10}};
const std::vector<LabelledExample> kTexts = {{{2, 5, 3}, 1}, {{2, 6, 7, 3}, 0}};
constexpr ShardForm kTextForm = {.vocab = {8, 1}, .labels = 2};
constexpr size_t kFirstOffset = 64;

class TokenShardTest : public ::testing::Test {
 protected:
  TokenShard written(const TokenExamples& examples, const ShardForm& form) const {
    write_token_shard(file_, examples, form);
    return TokenShard(file_, form);
  }
  /// The message of opening the file after `bytes` were put at `place`.
  std::string refusal(size_t place, const std::string& bytes) const {
    write_token_shard(file_, examples_of(kPairs), kPairForm);
    std::string text = read_file(file_);
    text.replace(place, bytes.size(), bytes);
    write_file(file_, text);
    return message_of<FileError>([&] { TokenShard(file_, kPairForm); });
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "00000.tokens";
};

TEST_F(TokenShardTest, GivesBackPairs) {
  const TokenShard memory(examples_of(kPairs), kPairForm), file = written(examples_of(kPairs), kPairForm);
  const std::vector<int32_t> chosen = {2, 0};
  const PackedBatch expected = pack(kPairs, chosen, 2);
  for (const TokenShard* shard : {&memory, &file}) {
    EXPECT_EQ(shard->examples(), 3);
    EXPECT_EQ(shard->tokens(), 14);
    EXPECT_EQ(shard->tokens_of_side(0), 6);
    EXPECT_EQ(shard->tokens_of_side(1), 8);
    EXPECT_EQ(shard->lengths(), lengths_of(kPairs));
    const PackedBatch batch = pack_pairs(*shard, chosen, 2);
    EXPECT_EQ(batch.source, expected.source);
    EXPECT_EQ(batch.source_offsets, expected.source_offsets);
    EXPECT_EQ(batch.target_input, expected.target_input);
    EXPECT_EQ(batch.labels, expected.labels);
  }
}

TEST_F(TokenShardTest, GivesBackLabelledTexts) {
  const TokenShard shard = written(examples_of(kTexts), kTextForm);
  const LabelledBatch batch = pack_labelled(shard, std::vector<int32_t>{1, 0});
  EXPECT_THAT(batch.tokens, ElementsAre(2, 6, 7, 3, 2, 5, 3));
  EXPECT_THAT(batch.labels, ElementsAre(0, 1));
  EXPECT_EQ(shard.lengths(), lengths_of(kTexts));
}

TEST_F(TokenShardTest, GivesBackTextsWithNumbers) {
  const std::vector<LabelledExample> texts = {{.tokens = {2, 5, 3}, .label = 0, .value = 3.75F},
                                              {.tokens = {2, 6, 7, 3}, .label = 0, .value = -2e6F}};
  const ShardForm form = {.vocab = {8, 1}, .numbers = true};
  const TokenShard memory(examples_of(texts), form), file = written(examples_of(texts), form);
  for (const TokenShard* shard : {&memory, &file}) {
    const LabelledBatch batch = pack_labelled(*shard, std::vector<int32_t>{1, 0});
    EXPECT_THAT(batch.tokens, ElementsAre(2, 6, 7, 3, 2, 5, 3));
    EXPECT_THAT(batch.labels, ElementsAre(0, 0));
    EXPECT_THAT(batch.values, ElementsAre(-2e6F, 3.75F));
  }
  EXPECT_THAT(message_of<FileError>([&] { TokenShard(file_, kTextForm); }), HasSubstr("labelled is 2, expected 1"));
  std::string bytes = read_file(file_);
  bytes.replace(kFirstOffset + 3 * 8, 4, std::string("\0\0\x80\x7f", 4));  // infinity
  write_file(file_, bytes);
  EXPECT_THAT(message_of<DataError>([&] { pack_labelled(TokenShard(file_, form), std::vector<int32_t>{0}); }),
              HasSubstr("00000.tokens: example 0 has the number inf"));
}

TEST_F(TokenShardTest, GivesBackWindows) {
  const TokenDocuments documents{.ids = {1, 2, 3, 4, 5, 6, 7}, .offsets = {0, 4, 7}};
  const std::vector<Window> windows = {{4, 2}, {0, 3}};
  const LanguageModelBatch expected = pack(documents, windows);
  const LanguageModelBatch batch =
      pack_windows(written({.sequences = documents, .labels = {}}, {.vocab = {8, 1}}), windows);
  EXPECT_EQ(batch.input, expected.input);
  EXPECT_EQ(batch.labels, expected.labels);
  EXPECT_EQ(batch.offsets, expected.offsets);
}

TEST_F(TokenShardTest, LargeVocabulariesTakeFourBytes) {
  const TokenDocuments documents{.ids = {65535, 65536, 70000}, .offsets = {0, 3}};
  const TokenShard shard = written({.sequences = documents, .labels = {}}, {.vocab = {70001, 1}});
  std::vector<int32_t> ids;
  shard.append_sequence(0, ids);
  EXPECT_EQ(ids, documents.ids);
  EXPECT_EQ(ShardForm({.vocab = {65536, 1}}).token_bytes(), 2);
}

TEST_F(TokenShardTest, TellsBytesAndHashOfTheFile) {
  const WrittenShard written = write_token_shard(file_, examples_of(kTexts), kTextForm);
  const std::string bytes = read_file(file_);
  EXPECT_EQ(written.bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(written.sha256, sha256(bytes));
}

TEST_F(TokenShardTest, DamageIsNamed) {
  EXPECT_THAT(refusal(0, "X"), HasSubstr("00000.tokens: is no shard of tokens"));
  EXPECT_THAT(refusal(8, "\x09"), HasSubstr("version is 9, expected 1"));
  EXPECT_THAT(refusal(12, "\x04"), HasSubstr("token_bytes is 4, expected 2"));
  EXPECT_THAT(refusal(16, "\x01"), HasSubstr("sides is 1, expected 2"));
  EXPECT_THAT(refusal(20, "\x01"), HasSubstr("labelled is 1, expected 0"));
  EXPECT_THAT(refusal(24, "\x04"), HasSubstr("4 examples and 14 tokens need"));
  EXPECT_THAT(refusal(24, "\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("examples is 18446744073709551615 in"));
  EXPECT_THAT(refusal(32, "\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("tokens is 18446744073709551615 in"));
  EXPECT_THAT(refusal(kFirstOffset, "\x01"), HasSubstr("the first offset is 1, expected 0"));
  EXPECT_THAT(refusal(kFirstOffset + 8, "\x0f"), HasSubstr("sequence 1 has the ids from 15 to 5"));
  EXPECT_THAT(refusal(kFirstOffset + 6 * 8, "\x0d"), HasSubstr("the last offset is 13, expected 14"));
  write_file(file_, "ATN");
  EXPECT_THAT(message_of<FileError>([&] { TokenShard(file_, kPairForm); }), HasSubstr("has 3 bytes"));
}

TEST_F(TokenShardTest, IdsAndLabelsAreCheckedAsTheyAreRead) {
  write_token_shard(file_, examples_of(kPairs), kPairForm);
  const ShardForm narrower = {.sides = 2, .vocab = {10, 9}};
  const TokenShard shard(file_, narrower);
  EXPECT_NO_THROW(pack_pairs(shard, std::vector<int32_t>{0, 2}, 2));
  EXPECT_THAT(message_of<DataError>([&] { pack_pairs(shard, std::vector<int32_t>{1}, 2); }),
              HasSubstr("00000.tokens: the ids from 7 to 11 have 9, which is outside the vocabulary of 9"));
  EXPECT_THROW(pack_pairs(shard, std::vector<int32_t>{3}, 2), DataError);
  EXPECT_THROW(pack_pairs(shard, std::vector<int32_t>{-1}, 2), DataError);
  const std::vector<LabelledExample> wrong = {{{2, 3}, 5}};
  EXPECT_THAT(
      message_of<DataError>([&] { pack_labelled(TokenShard(examples_of(wrong), kTextForm), std::vector<int32_t>{0}); }),
      HasSubstr("example 0 has label 5 of 2"));
}

}  // namespace
}  // namespace attune

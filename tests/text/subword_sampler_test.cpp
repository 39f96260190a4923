#include "attune/text/subword_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cmath>
#include <map>

#include "attune/text/limited_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/text/sentence_piece_text.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using Kind = SentencePieceOptions::Kind;
using ::testing::HasSubstr;

std::unique_ptr<SentencePieceTokenizer> trained_tokenizer(Kind kind) {
  return train_sentence_piece(sentence_piece_text(), {.kind = kind, .vocab_size = 100});
}

class SubwordSamplerKinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, SubwordSamplerKinds, testing::Values(Kind::unigram, Kind::bpe));

TEST_P(SubwordSamplerKinds, KeepsTheText) {
  const auto tokenizer = trained_tokenizer(GetParam());
  const SubwordSampler sampler(*tokenizer, 0.3);
  int64_t changed = 0;
  for (const std::string& sentence : sentence_piece_text()) {
    const Ids ids = tokenizer->encode(sentence);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      Random random(seed), again(seed);
      const Ids sampled = sampler.sample(ids, random);
      EXPECT_EQ(tokenizer->decode(sampled), sentence);
      EXPECT_EQ(sampler.sample(ids, again), sampled);
      changed += sampled != ids ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 60);
}

TEST_P(SubwordSamplerKinds, WithoutChanceIsTheBestSegmentation) {
  const auto tokenizer = trained_tokenizer(GetParam());
  const SubwordSampler sampler(*tokenizer, GetParam() == Kind::bpe ? 0 : 1e4);
  for (const std::string& sentence : sentence_piece_text()) {
    const Ids ids = tokenizer->encode(sentence);
    Random random(1);
    EXPECT_EQ(sampler.sample(ids, random), ids) << sentence;
  }
}

TEST_P(SubwordSamplerKinds, LeavesOtherTokensWhereTheyAre) {
  const auto tokenizer = trained_tokenizer(GetParam());
  const SubwordSampler sampler(*tokenizer, 0.3);
  Ids ids = {tokenizer->bos_id()};
  for (const char* part : {"Zwei Hunde", "the city"}) {
    for (const int32_t id : tokenizer->encode(part)) ids.push_back(id);
    ids.push_back(tokenizer->unk_id());
  }
  ids.push_back(tokenizer->eos_id());
  Random random(3);
  const Ids sampled = sampler.sample(ids, random);
  EXPECT_EQ(sampled.front(), tokenizer->bos_id());
  EXPECT_EQ(sampled.back(), tokenizer->eos_id());
  EXPECT_EQ(std::count(sampled.begin(), sampled.end(), tokenizer->unk_id()), 2);
  EXPECT_EQ(tokenizer->decode(sampled), tokenizer->decode(ids));
  EXPECT_EQ(sampler.sample({}, random), Ids{});
}

// All segmentations of a word and exp(alpha * the sum of their scores).
void enumerate(const sentencepiece::SentencePieceProcessor& processor, const std::string& rest, const Ids& ids,
               double weight, double alpha, std::map<Ids, double>& found) {
  if (rest.empty()) found[ids] = weight;
  for (size_t bytes = 1; bytes <= rest.size(); ++bytes) {
    const int id = processor.PieceToId(rest.substr(0, bytes));
    if (processor.IsUnknown(id)) continue;
    Ids longer = ids;
    longer.push_back(id);
    enumerate(processor, rest.substr(bytes), longer, weight * std::exp(alpha * processor.GetScore(id)), alpha, found);
  }
}

TEST(SubwordSampler, DrawsUnigramSegmentationsByTheirProbability) {
  const auto tokenizer = trained_tokenizer(Kind::unigram);
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.LoadFromSerializedProto(tokenizer->model()).ok());
  for (const double alpha : {0.2, 1.0}) {
    std::map<Ids, double> expected;
    enumerate(processor, "\xe2\x96\x81the", {}, 1, alpha, expected);
    ASSERT_GE(expected.size(), 3u);
    double sum = 0;
    for (const auto& [ids, weight] : expected) sum += weight;
    const SubwordSampler sampler(*tokenizer, alpha);
    const Ids ids = tokenizer->encode("the");
    std::map<Ids, double> counts;
    Random random(5);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) counts[sampler.sample(ids, random)] += 1.0 / kDraws;
    for (const auto& [segmentation, count] : counts) EXPECT_TRUE(expected.contains(segmentation));
    for (const auto& [segmentation, weight] : expected) EXPECT_NEAR(counts[segmentation], weight / sum, 0.015) << alpha;
  }
}

TEST(SubwordSampler, LeavesOutMerges) {
  const auto tokenizer = trained_tokenizer(Kind::bpe);
  const auto length = [&](double alpha) {
    size_t sum = 0;
    Random random(1);
    for (const std::string& sentence : sentence_piece_text())
      sum += SubwordSampler(*tokenizer, alpha).sample(tokenizer->encode(sentence), random).size();
    return sum;
  };
  size_t characters = 0;
  for (const std::string& sentence : sentence_piece_text())
    for (const char c : sentence) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  EXPECT_LT(length(0), length(0.1));
  EXPECT_LT(length(0.1), length(0.5));
  EXPECT_EQ(length(1), characters + sentence_piece_text().size()) << "one for the space before each text";
}

TEST(SubwordSampler, NeedsASentencePieceModel) {
  EXPECT_THAT(message_of<ConfigError>([] { SubwordSampler(WhitespaceTokenizer({"a"}), 0.1); }),
              HasSubstr("train.subword_sampling = 0.1: needs a SentencePiece model without a Hugging Face class, found "
                        "whitespace"));
  const std::shared_ptr<const Tokenizer> whole = trained_tokenizer(Kind::bpe);
  EXPECT_THAT(message_of<ConfigError>([&] { SubwordSampler(*limited_tokenizer(whole, 90), 0.1); }),
              HasSubstr("found one with the ids of a Hugging Face class, or with tokens that the model lacks"));
}

}  // namespace
}  // namespace attune

#include "attune/data/resegmentation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attune/text/sentence_piece_tokenizer.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

class ResegmentationTest : public ::testing::Test {
 protected:
  ResegmentationTest() {
    for (const std::string& text : texts_) {
      Ids ids = tokenizer_->encode(text);
      ids.push_back(tokenizer_->eos_id());
      examples_.push_back({.source = ids, .target = ids});
      labelled_.push_back({.tokens = ids, .label = 1});
    }
  }

  Resegmentation with(int64_t longest) const {
    return {*tokenizer_, *tokenizer_, {.alpha = 0.4, .seed = 7, .longest = longest}};
  }
  PackedBatch packed(const Ids& indices) const { return pack(examples_, indices, tokenizer_->bos_id()); }

  const std::vector<std::string> texts_ = {"lower and lowest", "newer and newest", "wider and widest", "a"};
  const std::unique_ptr<SentencePieceTokenizer> tokenizer_ =
      train_sentence_piece({"lower and lowest", "newer and newest", "wider and widest", "a new low", "a wide one"},
                           {.kind = SentencePieceOptions::Kind::bpe, .vocab_size = 40});
  std::vector<ParallelExample> examples_;
  std::vector<LabelledExample> labelled_;
};

Ids part(const Ids& ids, const Ids& offsets, size_t i) {
  return {ids.begin() + offsets[i], ids.begin() + offsets[i + 1]};
}

TEST_F(ResegmentationTest, CutsBothSidesAndKeepsTheirTexts) {
  const Ids indices = {2, 0, 1};
  const PackedBatch before = packed(indices), after = with(1000)(before, indices, 3);
  ASSERT_EQ(after.sentences(), 3);
  EXPECT_NE(after.source, before.source);
  EXPECT_NE(after.source, after.labels) << "the sides have draws of their own";
  for (size_t i = 0; i < 3; ++i) {
    const Ids source = part(after.source, after.source_offsets, i);
    const Ids input = part(after.target_input, after.target_offsets, i);
    const Ids labels = part(after.labels, after.target_offsets, i);
    const std::string& text = texts_[static_cast<size_t>(indices[i])];
    EXPECT_EQ(tokenizer_->decode(source), text);
    EXPECT_EQ(tokenizer_->decode(labels), text);
    EXPECT_EQ(source.back(), tokenizer_->eos_id());
    EXPECT_EQ(labels.back(), tokenizer_->eos_id());
    EXPECT_EQ(input.front(), tokenizer_->bos_id());
    EXPECT_EQ(Ids(input.begin() + 1, input.end()), Ids(labels.begin(), labels.end() - 1));
  }
}

TEST_F(ResegmentationTest, AnExampleDoesNotDependOnItsBatch) {
  const PackedBatch together = with(1000)(packed({2, 0, 1}), Ids{2, 0, 1}, 3);
  const PackedBatch alone = with(1000)(packed({0}), Ids{0}, 3);
  EXPECT_EQ(part(together.source, together.source_offsets, 1), alone.source);
  EXPECT_EQ(part(together.labels, together.target_offsets, 1), alone.labels);
  EXPECT_NE(with(1000)(packed({0}), Ids{0}, 4).source, alone.source);
}

TEST_F(ResegmentationTest, WhatWouldBeTooLongStays) {
  const PackedBatch before = packed({0, 3}), after = with(2)(before, Ids{0, 3}, 3);
  EXPECT_EQ(after.source, before.source);
  EXPECT_EQ(after.target_input, before.target_input);
  EXPECT_EQ(after.labels, before.labels);
}

TEST_F(ResegmentationTest, LabelledTexts) {
  const LabelledBatch before = pack(labelled_, Ids{1, 2}), after = with(1000)(before, Ids{1, 2}, 3);
  EXPECT_EQ(after.labels, before.labels);
  EXPECT_NE(after.tokens, before.tokens);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(tokenizer_->decode(part(after.tokens, after.offsets, i)), texts_[i + 1]);
}

}  // namespace
}  // namespace attune

#include "attune/data/sequence_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/text/character_tokenizer.h"
#include "tests/data/tokenizer_stub.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

class SequenceCutterTest : public ::testing::Test {
 protected:
  ByteTokenizer tokenizer_;  // pad 0, unk 1, bos 2, eos 3
  std::vector<Ids> seen_;
  SequenceCutter cutter_{tokenizer_, 5, [this](std::span<const int32_t> s) { seen_.emplace_back(s.begin(), s.end()); }};
};

TEST_F(SequenceCutterTest, DocumentsBecomeSequencesInAFrame) {
  cutter_.add(Ids{2, 10, 11, 12, 13, 3});
  cutter_.end_document();
  cutter_.add(Ids{2, 10, 11, 12, 3});
  cutter_.end_document();
  EXPECT_THAT(seen_, ElementsAre(Ids{2, 10, 11, 12, 3}, Ids{2, 13, 3}, Ids{2, 10, 11, 12, 3}));
}

TEST_F(SequenceCutterTest, PartsGiveWhatTheWholeGives) {
  const Ids document = {2, 10, 11, 3, 12, 13, 14, 3};
  for (size_t first = 0; first <= document.size(); ++first) {
    seen_.clear();
    cutter_.add(std::span(document).first(first));
    cutter_.add(std::span(document).subspan(first));
    cutter_.end_document();
    EXPECT_THAT(seen_, ElementsAre(Ids{2, 10, 11, 3, 3}, Ids{2, 12, 13, 14, 3})) << first;
  }
}

TEST_F(SequenceCutterTest, WhatHasNothingToHideIsLeftOut) {
  cutter_.add(Ids{2, 1, 1, 1, 10, 3});
  cutter_.end_document();
  cutter_.add(Ids{2, 3});
  cutter_.end_document();
  EXPECT_THAT(seen_, ElementsAre(Ids{2, 10, 3}));
  EXPECT_EQ(cutter_.skipped(), 1);
  EXPECT_EQ(cutter_.sequences(), 1);
  EXPECT_THROW(SequenceCutter(tokenizer_, 2, {}), ConfigError);
}

TEST(SequenceCutter, NoSpecialTokenCanBeHidden) {
  const TokenizerStub tokenizer({.pad = 0, .unk = 1, .bos = 2, .eos = 3, .mask = 4, .cls = 5, .sep = 6});
  std::vector<Ids> seen;
  SequenceCutter cutter(tokenizer, 5, [&](std::span<const int32_t> s) { seen.emplace_back(s.begin(), s.end()); });
  for (const Ids& document : {Ids{4, 5, 6}, Ids{4, 7}}) {
    cutter.add(document);
    cutter.end_document();
  }
  EXPECT_THAT(seen, ElementsAre(Ids{2, 4, 7, 3}));
  EXPECT_EQ(cutter.skipped(), 1);
}

}  // namespace
}  // namespace attune

#include "attune/data/twice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Twice, PairsOfSentences) {
  const PackedBatch both = twice(PackedBatch{.source = {5, 6, 3},
                                             .source_offsets = {0, 2, 3},
                                             .target_input = {2, 8, 2},
                                             .target_offsets = {0, 2, 3},
                                             .labels = {8, 3, 3}});
  EXPECT_THAT(both.source, ElementsAre(5, 6, 3, 5, 6, 3));
  EXPECT_THAT(both.source_offsets, ElementsAre(0, 2, 3, 5, 6));
  EXPECT_THAT(both.target_input, ElementsAre(2, 8, 2, 2, 8, 2));
  EXPECT_THAT(both.target_offsets, ElementsAre(0, 2, 3, 5, 6));
  EXPECT_THAT(both.labels, ElementsAre(8, 3, 3, 8, 3, 3));
}

TEST(Twice, LabelledTexts) {
  const LabelledBatch both = twice(LabelledBatch{.tokens = {2, 3}, .offsets = {0, 2}, .labels = {1}, .types = {}});
  EXPECT_THAT(both.tokens, ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(both.offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(both.labels, ElementsAre(1, 1));
  EXPECT_THAT(both.types, IsEmpty());
}

TEST(Twice, MaskedTexts) {
  const MaskedBatch both =
      twice(MaskedBatch{.tokens = {2, 0, 7, 3}, .offsets = {0, 4}, .rows = {1, 2}, .labels = {5, 7}});
  EXPECT_THAT(both.tokens, ElementsAre(2, 0, 7, 3, 2, 0, 7, 3));
  EXPECT_THAT(both.offsets, ElementsAre(0, 4, 8));
  EXPECT_THAT(both.rows, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(both.labels, ElementsAre(5, 7, 5, 7));
}

TEST(Twice, Windows) {
  const LanguageModelBatch both =
      twice(LanguageModelBatch{.input = {4, 5, 6}, .offsets = {0, 1, 3}, .labels = {5, 6, -1}});
  EXPECT_THAT(both.input, ElementsAre(4, 5, 6, 4, 5, 6));
  EXPECT_THAT(both.offsets, ElementsAre(0, 1, 3, 4, 6));
  EXPECT_THAT(both.labels, ElementsAre(5, 6, -1, 5, 6, -1));
}

}  // namespace
}  // namespace attune

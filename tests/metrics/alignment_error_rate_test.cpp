#include "attune/metrics/alignment_error_rate.h"

#include <gtest/gtest.h>

#include "attune/base/error.h"

namespace attune {
namespace {

using Alignments = std::vector<WordAlignment>;

TEST(AlignmentErrorRate, CountsLinksOfAllSentencesTogether) {
  const Alignments found = {{{0, 0}, {1, 1}, {2, 1}}, {{0, 1}}};
  const Alignments sure = {{{0, 0}, {1, 1}}, {{0, 0}, {1, 1}, {2, 2}}};
  const AlignmentErrorRate rate = alignment_error_rate(found, sure);
  EXPECT_EQ(rate.common, 2);
  EXPECT_EQ(rate.found, 4);
  EXPECT_EQ(rate.sure, 5);
  EXPECT_DOUBLE_EQ(rate.score, 100 * (1 - 2.0 * 2 / (4 + 5)));
  EXPECT_DOUBLE_EQ(rate.precision, 50);
  EXPECT_DOUBLE_EQ(rate.recall, 40);
}

TEST(AlignmentErrorRate, IsZeroForTheSameAndHundredForDifferentLinks) {
  const Alignments a = {{{0, 0}, {3, 1}}, {}}, b = {{{0, 1}}, {{1, 1}}};
  EXPECT_DOUBLE_EQ(alignment_error_rate(a, a).score, 0);
  EXPECT_DOUBLE_EQ(alignment_error_rate(a, b).score, 100);
  EXPECT_DOUBLE_EQ(alignment_error_rate(Alignments{{}}, Alignments{{}}).score, 0);
  EXPECT_DOUBLE_EQ(alignment_error_rate({}, {}).score, 0);
}

TEST(AlignmentErrorRate, OrderAndRepetitionDoNotCount) {
  const Alignments found = {{{2, 1}, {0, 0}, {2, 1}}}, sure = {{{0, 0}, {2, 1}}};
  EXPECT_DOUBLE_EQ(alignment_error_rate(found, sure).score, 0);
}

TEST(AlignmentErrorRate, RefusesDifferentNumbersOfSentences) {
  EXPECT_THROW(alignment_error_rate(Alignments(2), Alignments(3)), DataError);
}

}  // namespace
}  // namespace attune
